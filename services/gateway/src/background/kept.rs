//! Objects that the loops keep: they are created if they are missing, and corrected if somebody has changed them. All
//! gateways do it at once, and one of their writes counts.

use setpoint_codec::{Kind, Object, kind_of};
use setpoint_model::Key;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::{ApiError, Reason, Resource};

use crate::cached::cached;
use crate::registry::{AtLeast, Filter, Registry, RequestContext, Target};
use crate::write::current::Current;

/// Creates an object, or applies `correct`, which is given what is wanted, to the one of its name that exists if that
/// changes it. Returns the object as it is then.
///
/// # Errors
/// Those of the reads and writes; `NotFound` if it is deleted meanwhile.
pub(super) async fn keep<T: Resource + Object + Clone + PartialEq>(
    registry: &Registry,
    context: &RequestContext,
    namespace: &str,
    wanted: T,
    correct: impl Fn(&mut T, &T) + Send + Sync,
) -> Result<T, ApiError> {
    let key = Key::new(namespace, &Resource::meta(&wanted).name);
    let Some(current) = cached::<T>(registry.cache(), &key, AtLeast::Any).await? else {
        create_if_absent(registry, context, namespace, wanted.clone()).await?;
        return Ok(wanted);
    };
    let mut corrected = T::clone(&current);
    correct(&mut corrected, &wanted);
    if corrected != *current {
        let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
            let new = slot.insert(old.object.clone_box());
            if let Some(new) = new.downcast_mut::<T>() {
                correct(new, &wanted);
            }
            Ok(())
        };
        let target = Target::whole(kind_of::<T>(), &key);
        let updated = registry.guaranteed_update(context, &target, &mut mutate);
        updated.await?;
    }
    Ok(corrected)
}

/// Creates an object, unless one of its name exists.
///
/// # Errors
/// Those of the reads and the write.
pub(super) async fn create_if_absent<T: Resource + Object>(
    registry: &Registry,
    context: &RequestContext,
    namespace: &str,
    object: T,
) -> Result<(), ApiError> {
    let (kind, name) = (kind_of::<T>(), Resource::meta(&object).name.clone());
    let key = Key::new(namespace, &name);
    let found = registry.cache().get(kind, &key, AtLeast::Any).await?;
    if found.is_some() {
        return Ok(());
    }
    let target = Target::new(kind, namespace, "", "")?;
    match registry.create(context, &target, Box::new(object)).await {
        // Another gateway has just created it.
        Err(error) if error.reason != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Returns the filter of the objects that a field selector selects.
///
/// # Errors
/// `BadRequest` if the selector is malformed, or names a field that the kind has not.
pub(super) fn selected(
    kind: &'static Kind,
    namespace: &str,
    fields: &str,
) -> Result<Filter, ApiError> {
    let fields = Fields::parse(fields);
    let fields = fields.map_err(|error| ApiError::new(Reason::BadRequest, error.to_string()))?;
    Filter::new(kind, namespace, Selector::everything(), &fields)
}

/// Returns the filter of the objects with a name.
///
/// # Errors
/// None, for every kind has this field.
pub(super) fn named(kind: &'static Kind, namespace: &str, name: &str) -> Result<Filter, ApiError> {
    selected(kind, namespace, &format!("metadata.name={name}"))
}
