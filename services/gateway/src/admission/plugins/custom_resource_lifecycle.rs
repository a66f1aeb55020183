//! Refuses new objects of custom kinds whose definitions do not exist or are being deleted (upstream: the handler of
//! custom resources).

use setpoint_codec::{CustomObject, Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::Precondition;
use setpoint_store::cache::AtLeast;

use super::namespace_lifecycle::State;
use super::{Plugin, Reserving, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

/// The plugin.
pub(super) struct CustomResourceLifecycle;

impl Plugin for CustomResourceLifecycle {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        let name = definition_of(&request)?;
        let object = &*object;
        Some(Box::pin(async move {
            precondition(&name, AtLeast::Any, reader).await?;
            object.downcast_ref().map_or(Ok(()), check_served)
        }))
    }

    /// Reserves that the definition is unchanged: without it, an object could be created after another gateway has
    /// found that there is none left.
    fn reserve<'a>(
        &'a self,
        request: Attributes<'a>,
        _object: &'a mut dyn Object,
        at: AtLeast,
        reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        let name = definition_of(&request)?;
        Some(Box::pin(async move {
            let unchanged = precondition(&name, at, reader).await?;
            Ok(unchanged.into())
        }))
    }
}

/// Returns the name of the definition of the kind of a new object.
fn definition_of(request: &Attributes<'_>) -> Option<String> {
    let resource = request.target.kind.custom_resource()?;
    (request.operation == Operation::Create).then(|| resource.name.clone())
}

/// Checks that the kind of an object is served: its definition in the kind table may be newer than the cached one.
fn check_served(object: &CustomObject) -> Result<(), ApiError> {
    match &object.kind().definition().custom {
        Some(version) if !version.resource().is_terminating => Ok(()),
        Some(_) => Err(terminating()),
        None => Err(errors::no_such_resource()),
    }
}

/// Returns the precondition that a definition is unchanged.
///
/// # Errors
/// `MethodNotAllowed` if it is being deleted, `NotFound` if it does not exist.
async fn precondition(
    name: &str,
    at: AtLeast,
    reader: &dyn Reader,
) -> Result<Precondition, ApiError> {
    let kind = kind_of::<CustomResourceDefinition>();
    match State::of(kind, &Key::new("", name), at, reader).await? {
        None => Err(errors::no_such_resource()),
        Some(state) if state.is_terminating => Err(terminating()),
        Some(state) => Ok(state.unchanged()),
    }
}

fn terminating() -> ApiError {
    let message = "create not allowed while custom resource definition is terminating";
    ApiError::new(Reason::MethodNotAllowed, message)
}
