//! The changes that the gateway makes in the objects that every cluster has (upstream: `ensurer`).

use setpoint_proto::Resource;
use setpoint_proto::flowcontrol::{FlowSchema, PriorityLevelConfiguration};

use super::MANDATORY;

/// The annotation that says whether the gateway keeps the spec of an object as it is in every cluster.
pub(super) const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

/// An object that configures priority and fairness.
pub trait Configured: Resource + Clone {
    /// Takes the spec of another one. Returns whether it was different.
    fn take_spec(&mut self, from: &Self) -> bool;
}

impl Configured for FlowSchema {
    fn take_spec(&mut self, from: &Self) -> bool {
        let differs = self.spec != from.spec;
        self.spec.clone_from(&from.spec);
        differs
    }
}

impl Configured for PriorityLevelConfiguration {
    /// The shares of the exempt level are the user's.
    fn take_spec(&mut self, from: &Self) -> bool {
        let mut expected = from.spec.clone();
        if expected.exempt.is_some() && self.spec.exempt.is_some() {
            expected.exempt.clone_from(&self.spec.exempt);
        }
        let differs = self.spec != expected;
        self.spec = expected;
        differs
    }
}

/// Returns what a stored object should be; `None` if it is that. A mandatory one always has the spec of every cluster;
/// a suggested one has it unless its annotation says `false` or, without one, a user has changed it.
pub fn revised<T: Configured>(stored: &T, expected: &T) -> Option<T> {
    let meta = stored.meta();
    let is_mandatory = MANDATORY.contains(&meta.name.as_str());
    let says = auto_update(stored);
    let updates = is_mandatory || says.unwrap_or(meta.generation == 1);
    let mut revised = stored.clone();
    let has_changed = updates && revised.take_spec(expected);
    if says == Some(updates) && !has_changed {
        return None;
    }
    let annotations = &mut revised.meta_mut().annotations;
    annotations.insert(AUTO_UPDATE.into(), updates.to_string());
    Some(revised)
}

/// Returns whether an object was one of every cluster in another version, and is so no more.
pub fn is_unwanted<T: Configured>(stored: &T, mut expected: impl Iterator<Item = T>) -> bool {
    let name = &stored.meta().name;
    auto_update(stored) == Some(true) && expected.all(|one| one.meta().name != *name)
}

/// Returns the value of the annotation, as Go reads it.
fn auto_update<T: Resource>(object: &T) -> Option<bool> {
    match object.meta().annotations.get(AUTO_UPDATE)?.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flowcontrol::{levels, schemas};

    fn level(name: &str) -> PriorityLevelConfiguration {
        levels().find(|level| level.metadata.name == name).unwrap()
    }

    fn changed(name: &str, annotation: Option<&str>) -> PriorityLevelConfiguration {
        let mut level = level(name);
        level.spec.limited.get_or_insert_default().lendable_percent = Some(1);
        let annotations = &mut level.metadata.annotations;
        annotations.remove(AUTO_UPDATE);
        if let Some(value) = annotation {
            annotations.insert(AUTO_UPDATE.into(), value.into());
        }
        level.metadata.generation = 2;
        level
    }

    #[test]
    fn a_suggested_object_is_kept_unless_a_user_has_taken_it_over() {
        let (expected, name) = (level("system"), "system");
        assert_eq!(revised(&expected, &expected), None);
        assert_eq!(revised(&changed(name, Some("false")), &expected), None);
        let kept = revised(&changed(name, Some("true")), &expected).unwrap();
        assert_eq!(kept.spec, expected.spec);
        let taken = revised(&changed(name, None), &expected).unwrap();
        assert_eq!(taken.spec, changed(name, None).spec);
        assert_eq!(taken.metadata.annotations[AUTO_UPDATE], "false");
        let mut new = changed(name, None);
        new.metadata.generation = 1;
        assert_eq!(revised(&new, &expected).unwrap().spec, expected.spec);
    }

    #[test]
    fn a_mandatory_object_is_always_kept() {
        let expected = level("catch-all");
        let kept = revised(&changed("catch-all", Some("false")), &expected).unwrap();
        assert_eq!(kept.spec, expected.spec);
        assert_eq!(kept.metadata.annotations[AUTO_UPDATE], "true");
    }

    #[test]
    fn an_object_of_another_version_is_unwanted() {
        let mut old = schemas().next().unwrap();
        assert!(!is_unwanted(&old, schemas()));
        old.metadata.name = "of-another-version".into();
        assert!(is_unwanted(&old, schemas()));
        old.metadata.annotations.clear();
        assert!(!is_unwanted(&old, schemas()));
    }
}
