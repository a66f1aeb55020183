//! Refuses new objects in namespaces that do not exist or are being deleted (upstream: the admission plugin
//! NamespaceLifecycle).

use setpoint_codec::{Kind, Object, kind_of};
use setpoint_kinds::{Subresource, Target};
use setpoint_model::{Key, Revision};
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::StatusCause;
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING};
use setpoint_store::cache::{AtLeast, Cached};
use setpoint_store::{Expect, Precondition, keys};

use super::{Plugin, Reserving, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

/// The plugin.
pub(super) struct NamespaceLifecycle;

impl Plugin for NamespaceLifecycle {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        _object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        concerns(&request).then(|| {
            let checking = precondition(request.target, AtLeast::Any, reader);
            Box::pin(async { checking.await.map(drop) }) as Step<'a>
        })
    }

    /// Reserves that the namespace is unchanged: without it, an object could be created in a namespace that another
    /// gateway has just found empty.
    fn reserve<'a>(
        &'a self,
        request: Attributes<'a>,
        _object: &'a mut dyn Object,
        at: AtLeast,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        concerns(&request).then(|| {
            let reserving = precondition(request.target, at, reader);
            Box::pin(async { reserving.await.map(Into::into) }) as Reserving<'a>
        })
    }
}

/// Returns whether a request creates an object in a namespace.
fn concerns(request: &Attributes<'_>) -> bool {
    let target = request.target;
    let is_stored = target.subresource == Subresource::None && !target.served.is_review;
    request.operation == Operation::Create && is_stored && target.kind.namespaced
}

/// Returns the precondition that the namespace is unchanged.
///
/// # Errors
/// `NotFound` if it does not exist, `Forbidden` if it is being deleted.
async fn precondition(
    target: &Target,
    at: AtLeast,
    reader: &dyn Reader,
) -> Result<Precondition, ApiError> {
    let (kind, name) = (kind_of::<Namespace>(), &target.namespace);
    let state = State::of(kind, &Key::new("", name), at, reader).await?;
    let state = state.ok_or_else(|| errors::not_found(kind, name))?;
    match state.is_terminating {
        true => Err(terminating(target)),
        false => Ok(state.unchanged()),
    }
}

fn terminating(target: &Target) -> ApiError {
    let namespace = &target.namespace;
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = StatusCause {
        reason: NAMESPACE_TERMINATING.into(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".into(),
    };
    errors::forbidden(target, &why, Some(cause))
}

/// The state of an object that others belong to: a namespace, or the definition of a custom kind.
pub(super) struct State {
    path: String,
    revision: Revision,
    pub is_terminating: bool,
}

impl State {
    /// Reads the state of an object that exists. Only the part of it that says so is decoded.
    ///
    /// # Errors
    /// Those of the reader.
    pub(super) async fn of(
        kind: &'static Kind,
        key: &Key,
        at: AtLeast,
        reader: &dyn Reader,
    ) -> Result<Option<Self>, ApiError> {
        let path = keys::object(kind, key);
        let state = |cached: &Cached, path| Self {
            path,
            revision: cached.revision,
            is_terminating: cached.is_terminating(),
        };
        if at == AtLeast::Any
            && let Some(cached) = reader.get(kind, key, at).await?
        {
            return Ok(Some(state(&cached, path)));
        }
        let Some(entry) = reader.newest(&path).await? else {
            return Ok(None);
        };
        let cached = errors::readable(Cached::read(kind, key.clone(), &entry))?;
        Ok(Some(state(&cached, path)))
    }

    /// Returns the precondition that the object is unchanged.
    pub(super) fn unchanged(self) -> Precondition {
        Precondition {
            key: self.path,
            expect: Expect::At(self.revision),
            put: None,
        }
    }
}
