//! PriorityClass: value and preemption policy are immutable, and names with the prefix `system-` are reserved.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::scheduling::PriorityClass;

use super::StoredKind;
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

/// The classes that every cluster has: name, value, description.
const SYSTEM: [(&str, i32, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Returns the value of a class that every cluster has.
pub fn system_value(name: &str) -> Option<i32> {
    let mut classes = SYSTEM.iter();
    let found = classes.find(|(class, ..)| *class == name);
    found.map(|(_, value, _)| *value)
}

/// The largest value of other classes.
const HIGHEST_USER_VALUE: i32 = 1_000_000_000;
const RESERVED_PREFIX: &str = "system-";
const POLICIES: &[&str] = &["Never", "PreemptLowerPriority"];

impl StoredKind for PriorityClass {
    const COUNTS_GENERATIONS: bool = true;

    fn fill_defaults(&mut self) {
        let policy = &mut self.preemption_policy;
        policy.get_or_insert_with(|| "PreemptLowerPriority".into());
    }

    fn validate(&self, errors: &mut FieldErrors) {
        let name = &self.metadata.name;
        if name.starts_with(RESERVED_PREFIX) {
            if let Err(error) = check_system(self) {
                let path = FieldPath::root("metadata");
                let detail = format!(
                    "priority class names with '{RESERVED_PREFIX}' prefix are reserved for system use only. error: {error}"
                );
                errors.forbidden(&path.field("name"), detail);
            }
        } else if self.value > HIGHEST_USER_VALUE {
            let detail =
                format!("maximum allowed value of a user defined priority is {HIGHEST_USER_VALUE}");
            errors.forbidden(&FieldPath::root("value"), detail);
        }
        let path = FieldPath::root("preemptionPolicy");
        match self.preemption_policy.as_deref() {
            Some("") => errors.required(&path, ""),
            policy => errors.one_of(&path, policy, POLICIES),
        }
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        if self.value != old.value {
            errors.forbidden(
                &FieldPath::root("value"),
                "may not be changed in an update.",
            );
        }
        let path = FieldPath::root("preemptionPolicy");
        errors.immutable(&path, &self.preemption_policy, &old.preemption_policy);
    }

    fn check_delete(name: &str) -> Result<(), &'static str> {
        match SYSTEM.iter().any(|(system, ..)| *system == name) {
            true => Err("this is a system priority class and cannot be deleted"),
            false => Ok(()),
        }
    }

    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Global-Default").then(|| self.global_default.into())
    }
}

/// Returns the classes that every cluster has.
pub fn system_classes() -> impl Iterator<Item = PriorityClass> {
    SYSTEM.into_iter().map(|(name, value, description)| {
        let mut class = PriorityClass {
            value,
            description: description.into(),
            ..Default::default()
        };
        class.metadata.name = name.into();
        class.fill_defaults();
        class
    })
}

/// Returns the class, without a name, of a Pod that names none in a cluster without a default: priority 0.
pub fn unclassified() -> PriorityClass {
    let mut class = PriorityClass::default();
    class.fill_defaults();
    class
}

/// Checks that a class with a reserved name is one of [`SYSTEM`].
///
/// # Errors
/// The difference.
fn check_system(class: &PriorityClass) -> Result<(), String> {
    let name = &class.metadata.name;
    let Some((_, value, _)) = SYSTEM.iter().find(|(system, ..)| system == name) else {
        return Err(format!("{name} is not a known system priority class"));
    };
    if class.value != *value {
        return Err(format!("value of {name} PriorityClass must be {value}"));
    }
    if class.global_default {
        return Err(format!(
            "globalDefault of {name} PriorityClass must be false"
        ));
    }
    Ok(())
}

/// Returns the default class: of several, which concurrent creates may leave, the one of the lowest value.
pub fn default(classes: &[PriorityClass]) -> Option<&PriorityClass> {
    let defaults = classes.iter().filter(|class| class.global_default);
    defaults.min_by_key(|class| class.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, value: i32) -> PriorityClass {
        let mut class = PriorityClass {
            value,
            ..Default::default()
        };
        class.metadata.name = name.into();
        class.fill_defaults();
        class
    }

    fn errors_of(class: &PriorityClass) -> String {
        let mut errors = FieldErrors::default();
        class.validate(&mut errors);
        errors.to_string()
    }

    /// The cases of upstream's `TestValidatePriorityClass`.
    #[test]
    fn reserved_names_and_large_values_are_forbidden() {
        assert_eq!(errors_of(&class("tier1", 100)), "[]");
        assert_eq!(errors_of(&class("tier1", HIGHEST_USER_VALUE)), "[]");
        assert_eq!(
            errors_of(&class("system-node-critical", 2_000_001_000)),
            "[]"
        );
        assert!(errors_of(&class("tier1", HIGHEST_USER_VALUE + 1)).contains("value: Forbidden"));
        for (name, value) in [("system-foo", 1), ("system-node-critical", 1)] {
            assert!(errors_of(&class(name, value)).contains("metadata.name: Forbidden"));
        }
        let mut default = class("system-node-critical", 2_000_001_000);
        default.global_default = true;
        assert!(errors_of(&default).contains("globalDefault of system-node-critical"));
        let mut policy = class("tier1", 1);
        policy.preemption_policy = Some("Always".into());
        assert!(errors_of(&policy).contains("preemptionPolicy: Unsupported value"));
        policy.preemption_policy = Some(String::new());
        assert!(errors_of(&policy).contains("preemptionPolicy: Required value"));
    }

    #[test]
    fn value_and_policy_do_not_change() {
        let (old, mut new) = (class("tier1", 1), class("tier1", 2));
        new.preemption_policy = Some("Never".into());
        let mut errors = FieldErrors::default();
        new.validate_update(&old, &mut errors);
        let text = errors.to_string();
        assert!(
            text.contains("value: Forbidden: may not be changed in an update."),
            "{text}"
        );
        assert!(text.contains("preemptionPolicy: Invalid value"), "{text}");
    }

    #[test]
    fn of_several_defaults_the_lowest_counts() {
        let mut classes = [class("a", 3), class("b", 1), class("c", 2)];
        assert!(default(&classes).is_none());
        classes[0].global_default = true;
        classes[2].global_default = true;
        assert_eq!(default(&classes).map(|class| class.value), Some(2));
    }
}
