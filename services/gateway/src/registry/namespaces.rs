//! Namespaces: creates the initial ones, and checks whether one accepts new objects.

use std::time::Duration;

use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Reason, Resource as _};
use setpoint_store::{Expect, Precondition};

use super::{AtLeast, Call, Registry, Target, errors};

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

/// Returns the kind Namespace.
pub(super) fn kind() -> &'static Kind {
    kinds()
        .by_resource(Namespace::RESOURCE)
        .expect("its message is compiled in")
}

impl Registry {
    /// Returns the precondition that the namespace of the target is unchanged when the object is created: otherwise an object
    /// could be created in a namespace that another gateway has just found empty. `None` for cluster-scoped kinds.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, `Forbidden` if it is being deleted.
    pub(super) async fn check_namespace(
        &self,
        target: &Target,
        at: AtLeast,
    ) -> Result<Option<Precondition>, ApiError> {
        if !target.kind.namespaced {
            return Ok(None);
        }
        let namespace = Target::whole(kind(), &Key::new("", &target.namespace));
        let state = match at {
            AtLeast::Newest => self.newest(&namespace).await?,
            _ => self.hoped(&namespace).await?,
        };
        if state.object.meta().deletion_timestamp.is_none() {
            return Ok(Some(Precondition {
                key: namespace.path(),
                expect: Expect::At(state.revision),
                put: None,
            }));
        }
        let why = format!(
            "unable to create new content in namespace {} because it is being terminated",
            target.namespace
        );
        let cause = StatusCause {
            reason: NAMESPACE_TERMINATING.into(),
            message: format!("namespace {} is being terminated", target.namespace),
            field: "metadata.namespace".into(),
        };
        Err(errors::forbidden(target, &why, Some(cause)))
    }

    /// Creates the initial namespaces; retries until each exists.
    pub(super) async fn create_namespaces(&self) {
        let call = Call::default().by("gateway");
        for name in ALWAYS {
            while let Err(error) = self.create_namespace(&call, name).await {
                tracing::debug!(namespace = name, %error, "not created yet");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn create_namespace(&self, call: &Call, name: &str) -> Result<(), ApiError> {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        let target = Target::new(kind(), "", "", "")?;
        match self.create(call, &target, Box::new(namespace)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }
}
