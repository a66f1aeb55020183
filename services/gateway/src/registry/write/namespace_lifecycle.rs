//! Namespace lifecycle: whether a namespace accepts new objects (upstream: the NamespaceLifecycle admission plugin).

use setpoint_codec::{Kind, kinds};
use setpoint_model::Key;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Resource as _};
use setpoint_store::{Expect, Precondition};

use crate::registry::{AtLeast, Registry, Target, errors};

/// Returns the kind Namespace.
pub(crate) fn kind() -> &'static Kind {
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
    pub(crate) async fn check_namespace(
        &self,
        target: &Target,
        at: AtLeast,
    ) -> Result<Option<Precondition>, ApiError> {
        if !target.kind.namespaced {
            return Ok(None);
        }
        let namespace = Target::whole(kind(), &Key::new("", &target.namespace));
        let state = match at {
            AtLeast::Newest => self.live(&namespace).await?,
            _ => self.cached(&namespace).await?,
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
}
