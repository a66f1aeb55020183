//! Fields whose descriptions say "Immutable." are those that no update may change.

use serde_json::Value;

use super::paths::{self, Path};
use super::{failures, objects, statements};

/// Parts of upstream's messages about fields that must not change.
const REFUSALS: [&str; 4] = ["immutable", "may not", "Forbidden", "cannot"];

#[test]
fn fields_that_are_stated_as_immutable_are() {
    let stated = |text: &str| statements::is_immutable(text).then_some(());
    let failures = failures(stated, |path, ()| match is_immutable(path) {
        true => Ok(()),
        false => Err("it can be changed".into()),
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Returns whether a change of the field has no effect, or is refused for being one: an update to the same value is
/// not.
fn is_immutable(path: &Path) -> bool {
    objects::examples(path.kind).iter().any(|example| {
        let [before, after] = paths::values(path.field()).map(|value| path.put(example, value));
        is_refused(path, &before, &after) || is_kept(path, &before, &after)
    })
}

fn is_refused(path: &Path, before: &Value, after: &Value) -> bool {
    let kept = objects::errors_of_update(path.kind, "", before, before);
    let changed = objects::errors_of_update(path.kind, "", before, after);
    let shown = path.shown();
    changed.difference(&kept).any(|(field, message)| {
        let is_there = shown.starts_with(field.as_str()) || field.starts_with(&shown);
        is_there && REFUSALS.iter().any(|refusal| message.contains(refusal))
    })
}

fn is_kept(path: &Path, before: &Value, after: &Value) -> bool {
    let updated = objects::after_update(path.kind, before, after);
    updated.is_some_and(|updated| {
        let same = objects::after_update(path.kind, before, before);
        same.is_some_and(|same| path.get(&same) == path.get(&updated))
    })
}
