//! The change from kubectl's client-side apply, which keeps the last configuration in an annotation.

use serde_json::Value;

use super::compare::Comparison;
use super::conflict::{ApplyError, Conflicts};
use super::managers::{Edit, Managers};
use super::object_set;

/// The annotation of client-side apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager that is also the client-side one.
const KUBECTL: &str = "kubectl";

impl Managers {
    /// Like [`Self::apply`], but fields that kubectl has applied client-side, and that are unchanged since then, are no
    /// conflicts for kubectl.
    ///
    /// # Errors
    /// As [`Self::apply`].
    pub fn apply_or_upgrade(
        &mut self,
        edit: &Edit<'_>,
        live: &Value,
        config: &Value,
        force: bool,
    ) -> Result<Option<Value>, ApplyError> {
        let before = self.clone();
        let conflicts = match self.apply(edit, live, config, force) {
            Err(ApplyError::Conflicts(conflicts)) if edit.manager == KUBECTL => conflicts,
            result => return result,
        };
        *self = before;
        let Some(own) = own_fields(edit, live) else {
            return Err(ApplyError::Conflicts(conflicts));
        };
        let others = conflicts.0.into_iter();
        let others: Vec<_> = others.filter(|one| !own.contains(&one.path)).collect();
        match others.is_empty() {
            true => self.apply(edit, live, config, true),
            false => Err(ApplyError::Conflicts(Conflicts(others))),
        }
    }
}

/// Returns the paths that the annotation names and that are as it says.
fn own_fields(edit: &Edit<'_>, live: &Value) -> Option<Vec<String>> {
    let text = annotation(live)?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion")?.as_str()? != edit.kind.api_version() {
        return None;
    }
    let structure = edit.structure();
    let shape = structure.shape();
    let comparison = Comparison::of(shape, &last, live).ok()?;
    let changed = comparison.added.union(&comparison.modified);
    let changed = changed.union(&comparison.removed);
    let mut paths = Vec::new();
    let set = object_set::of(shape, &last).ok()?;
    set.difference(&changed)
        .for_each(&mut |path| paths.push(path));
    Some(paths)
}

fn annotation(live: &Value) -> Option<&str> {
    let annotations = live.get("metadata")?.get("annotations")?;
    annotations.get(LAST_APPLIED)?.as_str()
}

/// Returns the annotation for a configuration that kubectl applies, if the live object has one (upstream:
/// `lastAppliedUpdater`).
pub fn last_applied_of(manager: &str, live: &Value, config: &Value) -> Option<String> {
    if manager != KUBECTL || annotation(live)?.is_empty() {
        return None;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations") {
        annotations.as_object_mut()?.remove(LAST_APPLIED);
    }
    Some(format!("{config}\n"))
}
