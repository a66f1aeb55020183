//! Creates the namespaces that every cluster has (upstream: the system-namespaces controller).

use std::time::Duration;

use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason};

use crate::registry::write::namespace_lifecycle::kind;
use crate::registry::{Registry, RequestContext, Target};

/// The namespaces that are created at start.
const ALWAYS: [&str; 5] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "setpoint-system",
];

/// The pause between attempts to create them.
const PAUSE: Duration = Duration::from_millis(500);

impl Registry {
    /// Creates the initial namespaces; retries until each exists.
    pub(crate) async fn create_namespaces(&self) {
        let context = RequestContext::default().by("gateway");
        for name in ALWAYS {
            while let Err(error) = self.create_namespace(&context, name).await {
                tracing::debug!(namespace = name, %error, "not created yet");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn create_namespace(&self, context: &RequestContext, name: &str) -> Result<(), ApiError> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        let target = Target::new(kind(), "", "", "")?;
        match self.create(context, &target, Box::new(namespace)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
