//! Strict field validation: finds unknown fields and duplicate keys.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use serde_json::Value;

use crate::fields::Name;
use crate::rules::{self, Field, Message};
use crate::{Error, Kind};

/// The maximum number of reported problems.
const MAX_PROBLEMS: usize = 100;

/// Returns the unknown and duplicate fields of a document, in the wording of Kubernetes: `unknown field "spec.foo"`.
///
/// Syntax errors are not reported here but by decoding the document.
pub fn unknown_fields(kind: &Kind, json: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let root = match kind.is_custom() {
        true => Some(Shape::Resource),
        false => rules::message(kind.message.full_name()).map(Shape::Message),
    };
    if let Some(at) = root {
        let walk = Walk {
            at,
            path: &mut String::new(),
            found: &mut found,
        };
        let _ = walk.deserialize(&mut serde_json::Deserializer::from_slice(json));
    }
    for path in pruned(kind, json) {
        report(&mut found, "unknown", &path);
    }
    found
}

/// Returns the paths of the fields that pruning removes from an object of a custom kind.
fn pruned(kind: &Kind, json: &[u8]) -> Vec<String> {
    let definition = kind.definition();
    let version = definition.custom.as_ref();
    let Some(schema) = version.and_then(|version| version.schema()) else {
        return Vec::new();
    };
    let document = serde_json::from_slice::<Value>(json);
    document.map_or_else(|_| Vec::new(), |mut document| schema.prune(&mut document))
}

fn report(found: &mut Vec<String>, problem: &str, path: &str) {
    if found.len() < MAX_PROBLEMS {
        found.push(format!("{problem} field {path:?}"));
    }
}

/// Rejects a document with unknown or duplicate fields.
///
/// # Errors
/// If there is any; the message lists them all.
pub fn check(kind: &'static Kind, json: &[u8]) -> Result<(), Error> {
    match unknown_fields(kind, json).as_slice() {
        [] => Ok(()),
        found => Err(Error::json(
            kind,
            format!("strict decoding error: {}", found.join(", ")),
        )),
    }
}

/// The expected structure of a value.
#[derive(Clone, Copy)]
enum Shape {
    Message(&'static Message),
    /// An object of a custom kind: pruning finds the unknown fields except those of its metadata.
    Resource,
    /// JSON with any fields.
    Any,
    List(&'static Field),
    Map(&'static Field),
    /// A scalar, or JSON that is not checked.
    Leaf,
}

impl Shape {
    fn field(field: &'static Field) -> Self {
        match field {
            list if list.descriptor.is_list() => Self::List(list),
            map if map.descriptor.is_map() => Self::Map(map),
            single => Self::element(single),
        }
    }

    fn element(field: &'static Field) -> Self {
        field.message().map_or(Self::Leaf, Self::Message)
    }

    /// Returns the structure of the value of a key; `None` for an unknown key.
    fn child(self, key: &str) -> Option<Self> {
        match self {
            Self::Message(message) => match message.field(key) {
                Some(field) => Some(Self::field(field)),
                None if message.has_kind && ["kind", "apiVersion"].contains(&key) => {
                    Some(Self::Leaf)
                }
                None => None,
            },
            Self::Map(field) => Some(Self::element(field)),
            Self::Resource if key == "metadata" => {
                rules::message("k8s.meta.v1.ObjectMeta").map(Self::Message)
            }
            Self::Resource | Self::Any => Some(Self::Any),
            Self::List(_) | Self::Leaf => Some(Self::Leaf),
        }
    }
}

struct Walk<'a> {
    at: Shape,
    path: &'a mut String,
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn step(&mut self, at: Shape) -> Walk<'_> {
        Walk {
            at,
            path: self.path,
            found: self.found,
        }
    }

    fn report(&mut self, problem: &str) {
        report(self.found, problem, self.path);
    }

    fn push_key(&mut self, key: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.at {
            Shape::Leaf => deserializer.deserialize_ignored_any(IgnoredAny).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut seen = BTreeSet::new();
        let parent = self.path.len();
        while let Some(key) = map.next_key_seed(Name)? {
            self.push_key(&key);
            let child = self.at.child(&key);
            if child.is_none() {
                self.report("unknown");
            } else if !seen.insert(key) {
                self.report("duplicate");
            }
            map.next_value_seed(self.step(child.unwrap_or(Shape::Leaf)))?;
            self.path.truncate(parent);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let parent = self.path.len();
        let at = match self.at {
            Shape::List(field) => Shape::element(field),
            Shape::Any => Shape::Any,
            _ => Shape::Leaf,
        };
        for index in 0.. {
            write!(self.path, "[{index}]").expect("writing to a String does not fail");
            let more = list.next_element_seed(self.step(at))?;
            self.path.truncate(parent);
            if more.is_none() {
                break;
            }
        }
        Ok(())
    }

    // Values of the wrong type are reported by decoding.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    fn found(kind: &str, json: &str) -> Vec<String> {
        unknown_fields(kinds().by_resource(kind).unwrap(), json.as_bytes())
    }

    #[test]
    fn an_unknown_field_is_named_by_its_path() {
        let json = r#"{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"nam":"web"},"spec":{"template":{"spec":
            {"containers":[{"name":"a"},{"imagee":"nginx","livenessProbe":{"bogus":1,"httpGet":{"port":80,"zz":2}}}],
             "volumes":[{"emptyDir":{"sizeLimitt":"1Gi"}}]}}}}"#;
        assert_eq!(
            found("deployments.apps", json),
            [
                r#"unknown field "metadata.nam""#,
                r#"unknown field "spec.template.spec.containers[1].imagee""#,
                r#"unknown field "spec.template.spec.containers[1].livenessProbe.bogus""#,
                r#"unknown field "spec.template.spec.containers[1].livenessProbe.httpGet.zz""#,
                r#"unknown field "spec.template.spec.volumes[0].emptyDir.sizeLimitt""#,
            ]
        );
    }

    #[test]
    fn a_duplicate_field_is_named_by_its_path() {
        let json =
            r#"{"metadata":{"labels":{"a":"1","a":"2"}},"spec":{"nodeName":"n","nodeName":"m"}}"#;
        assert_eq!(
            found("pods", json),
            [
                r#"duplicate field "metadata.labels.a""#,
                r#"duplicate field "spec.nodeName""#
            ]
        );
    }

    #[test]
    fn kind_and_api_version_are_accepted_only_at_the_top_level() {
        let json = r#"{"kind":"Pod","kinds":"Pod","spec":{"kind":"Pod"}}"#;
        assert_eq!(
            found("pods", json),
            [r#"unknown field "kinds""#, r#"unknown field "spec.kind""#]
        );
    }

    #[test]
    fn maps_and_raw_json_accept_any_key() {
        let json = r#"{"metadata":{"labels":{"anything":"1"},"managedFields":[{"fieldsV1":{"f:spec":{},"f:spec":{}}}]},"data":{"x":"y"}}"#;
        assert_eq!(found("configmaps", json), Vec::<String>::new());
    }

    #[test]
    fn values_of_the_wrong_type_are_not_reported() {
        let json = r#"{"metadata":[{"name":1}],"spec":{"containers":{"name":2},"hostIPC":3.5,"nodeName":null}}"#;
        assert_eq!(found("pods", json), Vec::<String>::new());
    }

    #[test]
    fn the_number_of_reported_problems_is_limited() {
        let fields: Vec<String> = (0..1000).map(|n| format!(r#""x{n}":{n}"#)).collect();
        assert_eq!(
            found("pods", &format!("{{{}}}", fields.join(","))).len(),
            MAX_PROBLEMS
        );
    }

    #[test]
    fn check_returns_the_error_message_of_kubernetes() {
        let kind = kinds().by_resource("deployments.apps").unwrap();
        let error = check(
            kind,
            br#"{"spec":{"replicaz":3,"paused":true,"paused":false}}"#,
        )
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.replicaz", duplicate field "spec.paused""#
        );
    }
}
