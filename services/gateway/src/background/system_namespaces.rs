//! Creates the namespaces that every cluster has (upstream: the system-namespaces controller).

use std::time::Duration;

use setpoint_codec::kind_of;
use setpoint_proto::core::Namespace;
use setpoint_proto::{ApiError, Reason};

use crate::registry::{Registry, RequestContext, Target};

const INITIAL_NAMESPACES: [&str; 5] = [
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "setpoint-system",
];

const RETRY_DELAY: Duration = Duration::from_millis(500);

impl Registry {
    /// Creates the initial namespaces, and retries until each exists.
    pub(crate) async fn create_namespaces(&self) {
        let context = RequestContext::default().by("gateway");
        for name in INITIAL_NAMESPACES {
            while let Err(error) = self.create_namespace(&context, name).await {
                tracing::debug!(namespace = name, %error, "creating a namespace failed; trying again");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    async fn create_namespace(&self, context: &RequestContext, name: &str) -> Result<(), ApiError> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        let target = Target::new(kind_of::<Namespace>(), "", "", "")?;
        match self.create(context, &target, Box::new(namespace)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
