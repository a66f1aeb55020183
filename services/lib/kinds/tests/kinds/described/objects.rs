//! The defaults and errors of objects, as the gateway makes them for requests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Kind, Object};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{Target, create, update, versions};
use setpoint_proto::ApiError;

/// Errors as their fields and messages.
pub type Errors = BTreeSet<(String, String)>;

/// Returns objects of the kind that have what the validation of some fields presupposes: that of the kind's own
/// options, and those of `examples.json`.
pub fn examples(kind: &Kind) -> Vec<Value> {
    static OTHERS: LazyLock<Vec<Value>> =
        LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap());
    let text = if kind.example.is_empty() {
        "{}"
    } else {
        &kind.example
    };
    let own = serde_json::from_str(text).unwrap();
    let is_of_kind =
        |object: &&Value| object["apiVersion"] == kind.api_version() && object["kind"] == kind.kind;
    let others = OTHERS.iter().filter(is_of_kind).cloned();
    let objects = [own].into_iter().chain(others);
    objects.map(named).collect()
}

fn named(mut object: Value) -> Value {
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("a");
    }
    object
}

/// Returns the object with its defaults; `None` if it cannot be decoded.
pub fn with_defaults(kind: &'static Kind, object: &Value) -> Option<Value> {
    let mut object = decoded(kind, object).ok()?;
    setpoint_kinds::of(kind.stored()).fill_defaults(&mut *object);
    let object = versions::of_stored(object, kind);
    serde_json::from_slice(&object.to_json()).ok()
}

/// Returns the errors of a creation.
pub fn errors_of_creation(kind: &'static Kind, object: &Value) -> Errors {
    let outcome = decoded(kind, object).and_then(|mut object| {
        let target = target(kind, &*object, "");
        metadata::prepare_create(object.meta_mut(), &target, Timestamp::now())?;
        create::prepare(&target, &mut *object);
        create::validate(&target, &mut *object)
    });
    errors(outcome)
}

/// Returns the errors of an update, of the whole object or of a part.
pub fn errors_of_update(kind: &'static Kind, part: &str, old: &Value, new: &Value) -> Errors {
    errors(updated(kind, part, old, new).map(drop))
}

/// Returns the object after an update that has no errors.
pub fn after_update(kind: &'static Kind, old: &Value, new: &Value) -> Option<Value> {
    let new = versions::of_stored(updated(kind, "", old, new).ok()?, kind);
    serde_json::from_slice(&new.to_json()).ok()
}

fn updated(
    kind: &'static Kind,
    part: &str,
    old: &Value,
    new: &Value,
) -> Result<Box<dyn Object>, ApiError> {
    let (mut old, mut new) = (decoded(kind, old)?, decoded(kind, new)?);
    let target = target(kind, &*old, part);
    setpoint_kinds::of(target.kind).fill_defaults(&mut *old);
    update::prepare(&target, &*old, &mut *new)?;
    update::validate(&target, &*old, &mut *new)?;
    Ok(new)
}

fn decoded(kind: &'static Kind, object: &Value) -> Result<Box<dyn Object>, ApiError> {
    let object = kind.from_json(object.to_string().as_bytes())?;
    let mut object = versions::to_stored(object);
    if kind.namespaced && object.meta().namespace.is_empty() {
        object.meta_mut().namespace = "default".into();
    }
    Ok(object)
}

fn target(kind: &'static Kind, object: &dyn Object, part: &str) -> Target {
    let namespace = if kind.namespaced { "default" } else { "" };
    Target::new(kind, namespace, &object.meta().name, part).unwrap()
}

fn errors(outcome: Result<(), ApiError>) -> Errors {
    let Err(error) = outcome else {
        return Errors::new();
    };
    if error.causes().is_empty() {
        return [(String::new(), error.message)].into();
    }
    let causes = error.causes().iter();
    causes
        .map(|cause| (cause.field.clone(), cause.message.clone()))
        .collect()
}
