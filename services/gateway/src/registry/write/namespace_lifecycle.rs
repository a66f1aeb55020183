//! Refuses new objects in namespaces that do not exist or are being deleted (upstream: the admission plugin NamespaceLifecycle), and of
//! custom kinds whose definitions are.

use setpoint_codec::kind_of;
use setpoint_model::{Key, Revision};
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Reason};
use setpoint_store::{Expect, Precondition};

use crate::kinds::custom::not_while_terminating;
use crate::registry::target;
use crate::registry::{AtLeast, Registry, Target, errors};

impl Registry {
    /// Returns the preconditions of a create: those about its namespace, and about the definition of a custom kind.
    ///
    /// # Errors
    /// As [`Self::check_namespace`]; `MethodNotAllowed` if the definition is being deleted, `NotFound` if it does not exist.
    pub(crate) async fn check_scope(
        &self,
        target: &Target,
        at: AtLeast,
    ) -> Result<Vec<Precondition>, ApiError> {
        let namespace = self.check_namespace(target, at).await?;
        let definition = self.check_definition(target, at).await?;
        Ok(namespace.into_iter().chain(definition).collect())
    }

    /// Returns the precondition that the definition of a custom kind is unchanged: without it, an object could be created after another
    /// gateway has found that there is none left.
    async fn check_definition(
        &self,
        target: &Target,
        at: AtLeast,
    ) -> Result<Option<Precondition>, ApiError> {
        let Some(resource) = target.kind.custom_resource() else {
            return Ok(None);
        };
        let key = Key::new("", &resource.name);
        let definition = Target::whole(kind_of::<CustomResourceDefinition>(), &key);
        match self.state_of(&definition, at).await {
            Ok((_, true)) => Err(not_while_terminating()),
            Ok((revision, false)) => Ok(Some(Precondition {
                key: target::path(&definition),
                expect: Expect::At(revision),
                put: None,
            })),
            Err(error) if error.reason == Reason::NotFound => Err(errors::no_such_resource()),
            Err(error) => Err(error),
        }
    }

    /// Returns the precondition of a create that the namespace is unchanged: without it, an object could be created in a
    /// namespace that another gateway has just found empty. `None` for cluster-scoped kinds.
    ///
    /// # Errors
    /// `NotFound` if it does not exist, `Forbidden` if it is being deleted.
    async fn check_namespace(
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
                key: target::path(&namespace),
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

    /// Returns the revision of a namespace or definition, and whether it is being deleted. One from the cache is not decoded as a whole.
    async fn state_of(&self, of: &Target, at: AtLeast) -> Result<(Revision, bool), ApiError> {
        if at == AtLeast::Any {
            let key = of.key();
            if let Some(cached) = self.cache.get(of.kind, &key, at).await? {
                return Ok((cached.revision, cached.is_terminating()));
            }
        }
        let current = self.live(of).await?;
        let is_terminating = current.object.meta().deletion_timestamp.is_some();
        Ok((current.revision, is_terminating))
    }
}
