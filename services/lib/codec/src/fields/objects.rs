//! The managed fields of objects: what a create, an update and an apply record in them.

use serde_json::Value;
use setpoint_proto::meta::ManagedFieldsEntry;

use super::conflict::ApplyError;
use super::last_applied::{LAST_APPLIED, last_applied_of};
use super::managers::{Edit, Managers};
use super::parts::{self, Concerned};
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

/// Records an update of `old` to `new`. If `may_replace`, the managed fields of the request replace the former ones, and an
/// empty entry ends the tracking. An object that is not tracked is not tracked again before it is applied.
pub fn update(edit: &Edit<'_>, old: &dyn Object, new: &mut dyn Object, may_replace: bool) {
    let live = &old.meta().managed_fields;
    let sent = std::mem::replace(&mut new.meta_mut().managed_fields, live.clone());
    if may_replace && sent == [ManagedFieldsEntry::default()] {
        new.meta_mut().managed_fields.clear();
        return;
    }
    let replaced = Managers::decode(&sent).ok();
    let replaced = replaced.filter(|managers| may_replace && !managers.is_empty() && sent != *live);
    let (was, is) = (old.encode(), new.encode());
    let is_same = was == is;
    if replaced.is_none() && is_same {
        return;
    }
    let parts = changed_parts(edit.kind, &was, &is);
    let recorded = parts.and_then(|(was, is)| match replaced {
        Some(mut managers) => {
            managers.update(edit, &was, &is)?;
            Ok(managers.encode())
        }
        None => update_live(edit, live, &was, &is),
    });
    // An object whose fields cannot be named is not tracked.
    new.meta_mut().managed_fields = recorded.unwrap_or_default();
    if is_same {
        keep_times(old, new);
    }
}

/// Returns the documents of the parts in which two encoded objects differ.
fn changed_parts(kind: &'static Kind, old: &[u8], new: &[u8]) -> Result<(Value, Value), String> {
    let parts = parts::changed(old, new).map_err(|error| error.to_string())?;
    let document_of = |part: &[u8]| {
        let part = kind.decode(part).map_err(|error| error.to_string())?;
        Ok::<_, String>(document(&*part))
    };
    Ok((document_of(&parts.0)?, document_of(&parts.1)?))
}

/// Returns the managed fields `live` after an update. Those that it does not concern are not decoded.
fn update_live(
    edit: &Edit<'_>,
    live: &[ManagedFieldsEntry],
    was: &Value,
    is: &Value,
) -> Result<Vec<ManagedFieldsEntry>, String> {
    if live.is_empty() {
        return Ok(Vec::new());
    }
    let concerned = Concerned::by(edit, live, was, is);
    let (concerned, others): (Vec<_>, Vec<_>) = live
        .iter()
        .cloned()
        .partition(|entry| concerned.includes(entry));
    let mut managers = Managers::decode(&concerned)?;
    managers.update(edit, was, is)?;
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

/// Returns the versions, other than that of an object, that its managers have recorded fields in and that a webhook has to convert.
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

/// Takes the fields that a write has changed from the managers that recorded them in another version. `live` and `converted` are
/// the object before and after the write in that version.
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
