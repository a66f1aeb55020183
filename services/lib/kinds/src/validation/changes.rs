//! The fields that a refused update would change, as part of its message (upstream: `diff.Diff`).

use serde::Serialize;
use serde_json::{Value, json};
use setpoint_codec::{diff, kind_of};
use setpoint_proto::Resource;

/// The number of fields that a message names, and the length of a value in it, in characters.
const FIELDS_MAX: usize = 10;
const VALUE_MAX: usize = 100;

/// Returns one line for each field in which two specs of objects of the kind `T` differ, each after a line break.
pub fn between<T: Resource>(old: &impl Serialize, new: &impl Serialize) -> String {
    let (old, new) = (json!({ "spec": old }), json!({ "spec": new }));
    let differences = diff(kind_of::<T>(), &old, &new);
    let lines = differences.iter().take(FIELDS_MAX).map(|difference| {
        let (before, after) = (&difference.before, &difference.after);
        let path = &difference.path;
        format!(
            "\n{path}: {} -> {}",
            shown(before.as_ref()),
            shown(after.as_ref())
        )
    });
    let mut text: String = lines.collect();
    if differences.len() > FIELDS_MAX {
        text += &format!("\nand {} more", differences.len() - FIELDS_MAX);
    }
    text
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "<unset>".to_owned(), Value::to_string);
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Container, EnvVar, Pod, PodSpec};

    use super::*;

    fn spec() -> PodSpec {
        let container = Container {
            name: "web".into(),
            ..Default::default()
        };
        PodSpec {
            restart_policy: "Always".into(),
            containers: vec![container],
            ..Default::default()
        }
    }

    /// Checks T5.
    #[test]
    fn changed_fields_are_named_with_both_values() {
        let mut new = spec();
        new.restart_policy = "Never".into();
        new.containers[0].image = "a".repeat(200);
        new.termination_grace_period_seconds = Some(5);
        let long = "a".repeat(99);
        assert_eq!(
            between::<Pod>(&spec(), &new),
            format!(
                "\nspec.containers[web].image: <unset> -> \"{long}...\
                \nspec.restartPolicy: \"Always\" -> \"Never\"\
                \nspec.terminationGracePeriodSeconds: <unset> -> 5"
            )
        );
    }

    #[test]
    fn the_number_of_fields_is_bounded() {
        let (mut old, mut new) = (spec(), spec());
        for n in 0..20 {
            let variable = |value: &str| EnvVar {
                name: format!("V{n}"),
                value: value.into(),
                ..Default::default()
            };
            old.containers[0].env.push(variable("old"));
            new.containers[0].env.push(variable("new"));
        }
        let text = between::<Pod>(&old, &new);
        assert_eq!(text.lines().count(), 12, "{text}");
        assert!(text.ends_with("\nand 10 more"), "{text}");
    }
}
