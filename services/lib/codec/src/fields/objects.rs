//! The managed fields of objects: what a create, an update and an apply record in them.

use serde_json::Value;
use setpoint_proto::meta::ManagedFieldsEntry;

use super::compare::Comparison;
use super::concerned::Concerned;
use super::conflict::ApplyError;
use super::encoded::Unclear;
use super::last_applied::{LAST_APPLIED, last_applied_of};
use super::managers::{Edit, Managers};
use crate::{Kind, Object};

/// The maximum size of the annotations with the last applied configuration, in bytes. It is left out beyond that.
const ANNOTATIONS_MAX: usize = 256 << 10;

/// Returns the JSON of an object without its managed fields, which nobody owns.
pub fn document(object: &dyn Object) -> Value {
    if object.meta().managed_fields.is_empty() {
        return object.to_document();
    }
    let mut bare = object.clone_box();
    bare.meta_mut().managed_fields.clear();
    bare.to_document()
}

/// Records the creator of an object, which owns its fields.
///
/// Malformed managed fields of the request are ignored. An object whose fields cannot be named is not tracked.
pub fn create(edit: &Edit<'_>, object: &mut dyn Object) {
    let sent = std::mem::take(&mut object.meta_mut().managed_fields);
    let managers = match Managers::decode(&sent) {
        Ok(mut sent) if !sent.is_empty() => {
            let created = sent.create(edit, &document(object));
            created.map(|()| sent)
        }
        _ => Managers::created(edit, object),
    };
    if let Ok(managers) = managers {
        object.meta_mut().managed_fields = managers.encode();
    }
}

/// Records an update of `old`, with its encoding, to `new`. If `may_replace`, the managed fields of the request replace
/// the former ones, and an empty entry ends the tracking. An object that is not tracked is not tracked again before it
/// is applied.
pub fn update(
    edit: &Edit<'_>,
    (old, was): (&dyn Object, &[u8]),
    new: &mut dyn Object,
    may_replace: bool,
) {
    let live = &old.meta().managed_fields;
    let sent = std::mem::replace(&mut new.meta_mut().managed_fields, live.clone());
    if may_replace && sent == [ManagedFieldsEntry::default()] {
        new.meta_mut().managed_fields.clear();
        return;
    }
    let replaces = may_replace && !sent.is_empty() && sent != *live;
    let replaced = replaces.then(|| Managers::decode(&sent).ok()).flatten();
    if replaced.is_none() && live.is_empty() {
        return;
    }
    let is = new.encode();
    let is_same = was == is;
    if replaced.is_none() && is_same {
        return;
    }
    let comparison = match Comparison::of_encoded(edit.kind, was, &is) {
        Ok(comparison) => Ok(comparison),
        Err(Unclear) => Comparison::of(edit.structure().shape(), &document(old), &document(new)),
    };
    let recorded = comparison.and_then(|comparison| match replaced {
        Some(mut managers) => {
            managers.record(edit, comparison);
            Ok(managers.encode())
        }
        None => update_live(edit, live, comparison),
    });
    // An object whose fields cannot be named is not tracked.
    new.meta_mut().managed_fields = recorded.unwrap_or_default();
    if is_same {
        keep_times(old, new);
    }
}

/// Returns the managed fields `live` after an update. Those that it does not concern are not decoded.
fn update_live(
    edit: &Edit<'_>,
    live: &[ManagedFieldsEntry],
    comparison: Comparison,
) -> Result<Vec<ManagedFieldsEntry>, String> {
    let concerned = Concerned::by(edit, live, &comparison);
    let (concerned, others): (Vec<_>, Vec<_>) = live
        .iter()
        .cloned()
        .partition(|entry| concerned.includes(entry));
    let mut managers = Managers::decode(&concerned)?;
    managers.record(edit, comparison);
    Ok(managers.encode_with(others))
}

/// Returns `live` with a configuration applied to it.
///
/// # Errors
/// If the configuration does not fit the kind or, without `force`, changes a field of another manager.
pub fn apply(
    edit: &Edit<'_>,
    live: &dyn Object,
    config: &Value,
    force: bool,
) -> Result<Box<dyn Object>, ApplyError> {
    let failed = |error| ApplyError::Malformed(format!("failed to decode managed fields: {error}"));
    let mut managers = Managers::decode(&live.meta().managed_fields).map_err(failed)?;
    let mut object = apply_for(edit, &mut managers, live, config, force)?;
    object.meta_mut().managed_fields = managers.encode();
    Ok(object)
}

/// Like [`apply`], with given managers. The managed fields of the result are not set.
///
/// # Errors
/// As [`apply`].
pub fn apply_for(
    edit: &Edit<'_>,
    managers: &mut Managers,
    live: &dyn Object,
    config: &Value,
    force: bool,
) -> Result<Box<dyn Object>, ApplyError> {
    let document = document(live);
    let new = managers.apply_or_upgrade(edit, &document, config, force)?;
    let new = new.unwrap_or(document);
    let object = edit.kind.from_json(new.to_string().as_bytes());
    let mut object = object.map_err(|error| ApplyError::Malformed(error.to_string()))?;
    if let Some(text) = last_applied_of(edit.manager, &new, config) {
        let annotations = &mut object.meta_mut().annotations;
        annotations.insert(LAST_APPLIED.to_owned(), text);
        let size: usize = annotations
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        if size > ANNOTATIONS_MAX {
            annotations.remove(LAST_APPLIED);
        }
    }
    Ok(object)
}

/// Returns the versions, other than that of an object, that its managers have recorded fields in and that a webhook has
/// to convert.
pub fn other_versions(object: &dyn Object) -> Vec<&'static Kind> {
    if !object.kind().is_custom() {
        return Vec::new();
    }
    let managers = Managers::decode(&object.meta().managed_fields);
    managers.map_or_else(
        |_| Vec::new(),
        |managers| managers.other_versions(object.kind()),
    )
}

/// Takes the fields that a write has changed from the managers that recorded them in another version. `live` and
/// `converted` are the object before and after the write in that version.
///
/// # Errors
/// With `checks`, if any of them owns such a field.
pub fn settle(
    new: &mut dyn Object,
    live: &dyn Object,
    converted: &dyn Object,
    checks: bool,
) -> Result<(), ApplyError> {
    let Ok(mut managers) = Managers::decode(&new.meta().managed_fields) else {
        return Ok(());
    };
    managers.settle(live.kind(), &document(live), &document(converted), checks)?;
    new.meta_mut().managed_fields = managers.encode();
    Ok(())
}

/// Restores the times of the managed fields if nothing else has changed, so that nothing is written.
pub fn keep_times(old: &dyn Object, new: &mut dyn Object) {
    let (was, is) = (&old.meta().managed_fields, &new.meta().managed_fields);
    let timeless = |entry: &ManagedFieldsEntry| ManagedFieldsEntry {
        time: None,
        ..entry.clone()
    };
    let same = was != is && was.iter().map(timeless).eq(is.iter().map(timeless));
    if same && document(old) == document(new) {
        new.meta_mut().managed_fields.clone_from(was);
    }
}
