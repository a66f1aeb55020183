//! The differences between two versions of an object, by field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use setpoint_proto::options::List;

use crate::Kind;
use crate::rules::{self, Field, Message};

/// Fields of the metadata that every write changes.
const IGNORED_METADATA: &[&str] = &["resourceVersion", "generation", "managedFields"];

/// A field that has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The path, for example `spec.template.spec.containers[nginx].image`.
    pub path: String,
    /// The former value.
    pub before: Option<Value>,
    /// The new value.
    pub after: Option<Value>,
}

/// Returns the fields in which `after` differs from `before`, sorted by name. Both are the JSON of objects of this
/// kind.
///
/// Entries of lists with merge keys are compared by key; other lists are compared as a whole.
pub fn diff(kind: &Kind, before: &Value, after: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut walk = Walk {
        differences: &mut differences,
        depth: 0,
    };
    let shape = match kind.is_custom() {
        true => Shape::Custom,
        false => Shape::Message(rules::message(kind.message.full_name())),
    };
    walk.value(String::new(), shape, Some(before), Some(after));
    differences
}

/// The structure of a value.
#[derive(Clone, Copy)]
enum Shape {
    Message(Option<&'static Message>),
    Map(&'static Field),
    List(&'static Field),
    Whole,
    /// A part of an object of a custom kind: objects are compared by field.
    Custom,
}

impl Shape {
    fn of(field: Option<&'static Field>) -> Self {
        match field {
            Some(field) if field.descriptor.is_map() => Self::Map(field),
            Some(field) if field.descriptor.is_list() => Self::List(field),
            Some(field) => Self::element(field),
            None => Self::Whole,
        }
    }

    fn element(field: &'static Field) -> Self {
        match field.message() {
            Some(message) => Self::Message(Some(message)),
            None => Self::Whole,
        }
    }
}

struct Walk<'a> {
    differences: &'a mut Vec<Difference>,
    depth: usize,
}

impl Walk<'_> {
    fn value(&mut self, path: String, shape: Shape, before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        let none = Map::new();
        let is_map = |value: Option<&'_ Value>| value.is_none_or(Value::is_object);
        // A value that was added or removed is one difference, except for maps and the top levels of an object.
        let by_field = match shape {
            Shape::Map(_) => true,
            Shape::Custom => [before, after].into_iter().flatten().all(Value::is_object),
            Shape::Message(_) => self.depth < 2 || (before.is_some() && after.is_some()),
            _ => false,
        };
        if by_field && is_map(before) && is_map(after) {
            let before = before.and_then(Value::as_object).unwrap_or(&none);
            let after = after.and_then(Value::as_object).unwrap_or(&none);
            return self.object(&path, shape, before, after);
        }
        match (shape, before, after) {
            (Shape::List(field), Some(Value::Array(before)), Some(Value::Array(after)))
                if has_distinct_keys(field, before) && has_distinct_keys(field, after) =>
            {
                self.list(&path, field, before, after);
            }
            _ => self.differences.push(Difference {
                path,
                before: before.cloned(),
                after: after.cloned(),
            }),
        }
    }

    fn object(
        &mut self,
        path: &str,
        shape: Shape,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
    ) {
        self.depth += 1;
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (part, inner) = match shape {
                Shape::Map(field) => (format!("{path}[{name}]"), Shape::element(field)),
                Shape::Message(message) => {
                    let field = message.and_then(|message| message.field(name));
                    (join(path, name), Shape::of(field))
                }
                Shape::Custom if path.is_empty() && name == "metadata" => {
                    let metadata = rules::message("k8s.meta.v1.ObjectMeta");
                    (join(path, name), Shape::Message(metadata))
                }
                Shape::Custom => (join(path, name), Shape::Custom),
                _ => (join(path, name), Shape::Whole),
            };
            if path != "metadata" || !IGNORED_METADATA.contains(&name.as_str()) {
                self.value(part, inner, before.get(name), after.get(name));
            }
        }
        self.depth -= 1;
    }

    fn list(&mut self, path: &str, field: &'static Field, before: &[Value], after: &[Value]) {
        self.depth += 1;
        let (before, after) = (by_key(field, before), by_key(field, after));
        let names: BTreeSet<_> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (old, new) = (before.get(name).copied(), after.get(name).copied());
            let path = format!("{path}[{name}]");
            self.value(path, Shape::element(field), old, new);
        }
        self.depth -= 1;
    }
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Returns whether the list has merge keys and all entries have different ones.
fn has_distinct_keys(field: &Field, entries: &[Value]) -> bool {
    let keys: Option<BTreeSet<_>> = entries.iter().map(|entry| key_of(field, entry)).collect();
    field.list() == List::Map && keys.is_some_and(|keys| keys.len() == entries.len())
}

fn by_key<'v>(field: &Field, entries: &'v [Value]) -> BTreeMap<String, &'v Value> {
    let named = entries
        .iter()
        .map(|entry| Some((key_of(field, entry)?, entry)));
    named.flatten().collect()
}

/// Returns the merge key of an entry. Keys with defaults may be missing.
fn key_of(field: &Field, entry: &Value) -> Option<String> {
    let entry = entry.as_object()?;
    let keys = field.key.iter().filter_map(|key| entry.get(key));
    let texts = keys.map(|value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    });
    let name = texts.collect::<Vec<_>>().join(",");
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    fn paths(resource: &str, before: &Value, after: &Value) -> Vec<String> {
        let kind = kinds().by_resource(resource).unwrap();
        let differences = diff(kind, before, after);
        differences.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn paths_have_the_keys_of_maps_and_lists() {
        let deployment = |image: &str, labels: Value| {
            json!({
                "metadata": {"name": "web", "resourceVersion": image, "generation": 3, "annotations": labels},
                "spec": {"replicas": 3, "template": {"spec": {"containers": [
                    {"name": "log", "image": "log:1"}, {"name": "nginx", "image": image},
                ]}}},
            })
        };
        let before = deployment("nginx:1.25", json!({"a.b/c": "1", "d": "2"}));
        let after = deployment("nginx:1.26", json!({"d": "3"}));
        let paths = paths("deployments.apps", &before, &after);
        let expected = [
            "metadata.annotations[a.b/c]",
            "metadata.annotations[d]",
            "spec.template.spec.containers[nginx].image",
        ];
        assert_eq!(paths, expected);
    }

    #[test]
    fn an_added_value_is_split_into_fields_only_at_the_top_levels() {
        let before = json!({"metadata": {"name": "web"}});
        let after = json!({
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 1, "strategy": {"rollingUpdate": {"maxSurge": 1}}},
        });
        let paths = paths("deployments.apps", &before, &after);
        assert_eq!(
            paths,
            ["metadata.labels[app]", "spec.replicas", "spec.strategy"]
        );
    }

    #[test]
    fn an_added_value_is_split_at_the_top_level_after_a_changed_list() {
        let before = json!({"spec": {"containers": [{"name": "a", "image": "1"}]}});
        let after = json!({
            "spec": {"containers": [{"name": "a", "image": "2"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready"}]},
        });
        let paths = paths("pods", &before, &after);
        assert_eq!(
            paths,
            [
                "spec.containers[a].image",
                "status.conditions",
                "status.phase"
            ]
        );
    }

    #[test]
    fn an_entry_added_to_a_list_at_the_top_level_is_one_difference() {
        let account = |names: &[&str]| {
            let secrets: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"secrets": secrets})
        };
        let paths = paths("serviceaccounts", &account(&["a"]), &account(&["a", "b"]));
        assert_eq!(paths, ["secrets[b]"]);
    }

    #[test]
    fn conditions_are_compared_by_type_and_an_added_one_is_one_difference() {
        let status = |conditions: Value| json!({"status": {"conditions": conditions}});
        let before = status(json!([{"type": "Ready", "status": "False", "reason": "a"}]));
        let after = status(json!([
            {"type": "Ready", "status": "True", "reason": "a"}, {"type": "PodScheduled", "status": "True"},
        ]));
        let paths = paths("pods", &before, &after);
        assert_eq!(
            paths,
            [
                "status.conditions[PodScheduled]",
                "status.conditions[Ready].status"
            ]
        );
    }

    #[test]
    fn a_list_with_duplicate_keys_is_compared_as_a_whole() {
        let pod = |names: &[&str]| {
            let containers: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"containers": containers}})
        };
        for (before, after) in [(&["a", "a"], &["a", "b"]), (&["a", "b"], &["b", "b"])] {
            let paths = paths("pods", &pod(before), &pod(after));
            assert_eq!(paths, ["spec.containers"], "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_list_without_keys_is_compared_as_a_whole() {
        let pod = |args: Value| json!({"spec": {"containers": [{"name": "a", "args": args}]}});
        let paths = paths("pods", &pod(json!(["1"])), &pod(json!(["1", "2"])));
        assert_eq!(paths, ["spec.containers[a].args"]);
    }
}
