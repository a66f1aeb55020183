//! Ownership of fields: records the manager of each field that a write sets (upstream: `FieldManager`).

use jiff::Timestamp;
use setpoint_codec::fields::{self, Edit, FieldSet};
use setpoint_codec::{Kind, Object};
use setpoint_kinds::{self as kinds, Paths};

use crate::registry::{RequestContext, Subresource};
use crate::write::current::Current;

/// Records the creator of an object with its defaults. Called before admission: its manager does not own what others
/// add.
pub(crate) fn created(context: &RequestContext, object: &mut dyn Object) {
    let reset = reset(object.kind(), Subresource::None);
    let edit = edit(context, object.kind(), Subresource::None, &reset);
    fields::create(&edit, object);
}

/// Records an update of an object through a subresource.
pub(crate) fn updated(
    context: &RequestContext,
    part: Subresource,
    old: &Current,
    new: &mut dyn Object,
) {
    let reset = reset(new.kind(), part);
    let edit = edit(context, new.kind(), part, &reset);
    let old = (&*old.object, &*old.encoding());
    fields::update(&edit, old, new, part == Subresource::None);
}

/// Returns the write of a manager.
pub(crate) fn edit<'a>(
    context: &'a RequestContext,
    kind: &'static Kind,
    part: Subresource,
    reset: &'a FieldSet,
) -> Edit<'a> {
    Edit {
        kind,
        manager: &context.manager,
        subresource: part.name(),
        now: Timestamp::now().into(),
        reset,
    }
}

/// Returns the fields that a write leaves as they are, whatever it sends. Nobody comes to own them by it.
pub(crate) fn reset(kind: &Kind, part: Subresource) -> FieldSet {
    FieldSet::of_fields(reset_paths(kind, part))
}

/// The paths are those of `GetResetFields` of upstream's strategies.
fn reset_paths(kind: &Kind, part: Subresource) -> Paths {
    match (part, kinds::find(kind)) {
        (Subresource::Status, Some(rules)) => rules.status_resets(),
        _ if kind.has_subresource("status") => &[&["status"]],
        _ => &[],
    }
}
