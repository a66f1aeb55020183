//! Refuses new objects in namespaces that do not exist or are being deleted (upstream: the admission plugin NamespaceLifecycle).

use setpoint_codec::kind_of;
use setpoint_model::{Key, Revision};
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING};
use setpoint_store::{Expect, Precondition};

use crate::registry::{AtLeast, Registry, Target, errors};

impl Registry {
    /// Returns the precondition of a create that the namespace is unchanged: without it, an object could be created in a
    /// namespace that another gateway has just found empty. `None` for cluster-scoped kinds.
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
        let namespace = Target::whole(kind_of::<Namespace>(), &Key::new("", &target.namespace));
        let (revision, is_terminating) = self.state_of(&namespace, at).await?;
        if !is_terminating {
            return Ok(Some(Precondition {
                key: namespace.path(),
                expect: Expect::At(revision),
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

    /// Returns the revision of a namespace, and whether it is being deleted. One from the cache is not decoded as a whole.
    async fn state_of(
        &self,
        namespace: &Target,
        at: AtLeast,
    ) -> Result<(Revision, bool), ApiError> {
        if at == AtLeast::Any {
            let key = namespace.key();
            if let Some(cached) = self.cache.get(namespace.kind, &key, at).await? {
                return Ok((cached.revision, cached.is_terminating()));
            }
        }
        let current = self.live(namespace).await?;
        let is_terminating = current.object.meta().deletion_timestamp.is_some();
        Ok((current.revision, is_terminating))
    }
}
