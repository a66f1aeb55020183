//! Objects of custom kinds: what the schema and the subresources of their definition ask for.

mod waits;

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use setpoint_codec::custom::ScalePaths;
use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_model::selector::Selector;
use setpoint_proto::setpoint::Wait;
use setpoint_schema::Schema;

use super::{Replicas, StoredKind};
use crate::validation::field_errors::FieldErrors;
use crate::validation::metadata;
use crate::validation::warnings::Warnings;
use crate::waits::Records;

const STATUS: &str = "status";

/// Returns a stored object in a served version. As upstream, it has the defaults of the version that it is stored in,
/// without the fields that the served version does not have. An object that a webhook has to convert stays as it is:
/// the registry calls it.
pub(super) fn of_stored(object: Box<dyn Object>, served: &'static Kind) -> Box<dyn Object> {
    if object.downcast_ref::<CustomObject>().is_none() {
        return object;
    }
    if object.kind() != served && is_converted_by_webhook(served) {
        return object;
    }
    match object.into_any().downcast::<CustomObject>() {
        Ok(object) => {
            let is_other = object.kind() != served;
            let mut object = *object;
            object.fill_defaults();
            if is_other {
                object = object.with_kind(served);
                prune(&mut object);
            }
            Box::new(object)
        }
        Err(_) => unreachable!("the type was compared"),
    }
}

/// Returns whether a webhook converts objects to this version from others.
pub fn is_converted_by_webhook(kind: &Kind) -> bool {
    let resource = kind.custom_resource();
    resource.is_some_and(|resource| resource.webhook().is_some())
}

/// Removes the fields that the schema of an object's version does not have.
pub fn prune(object: &mut CustomObject) {
    with_schema(object, |schema, document| drop(schema.prune(document)));
}

impl StoredKind for CustomObject {
    const COUNTS_GENERATIONS: bool = true;
    const ALLOWS_UNCONDITIONAL_UPDATE: bool = false;

    fn fill_defaults(&mut self) {
        with_schema(self, |schema, document| {
            schema.prune(document);
            // An object of which defaults were left out is refused by its validation.
            let _ = schema.fill_defaults(document);
        });
    }

    fn validate_create(&self, errors: &mut FieldErrors) {
        validate(self, None, errors);
    }

    fn validate_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(self, Some(old), errors);
    }

    fn validate_status_update(&self, old: &Self, errors: &mut FieldErrors) {
        validate(self, Some(old), errors);
    }

    fn prepare_create(&mut self) {
        if has_status(self) {
            self.content.remove(STATUS);
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        if has_status(self) {
            restore(&mut self.content, &old.content, STATUS);
        }
    }

    fn prepare_status_update(&mut self, old: &Self) {
        let status = self.content.remove(STATUS);
        self.content.clone_from(&old.content);
        self.content.remove(STATUS);
        self.content
            .extend(status.map(|status| (STATUS.to_owned(), status)));
    }

    fn warn(&self, old: Option<&Self>, warnings: &mut Warnings) {
        let known = old.map_or(&[][..], |old| &old.meta().finalizers);
        let finalizers = self.meta().finalizers.iter();
        let added = finalizers.filter(|name| !known.contains(name) && metadata::lacks_domain(name));
        let added: BTreeSet<_> = added.collect();
        for name in added {
            warnings.add(finalizer_warning(name));
        }
    }

    fn intent_changed(&self, old: &Self) -> bool {
        if !has_status(self) {
            return self.content != old.content;
        }
        let intent = |content: &Map<String, Value>| {
            let fields = content.iter().filter(|(name, _)| *name != STATUS);
            fields
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<Map<_, _>>()
        };
        intent(&self.content) != intent(&old.content)
    }

    fn scale(&self) -> Option<Replicas> {
        let paths = scale_paths(self)?;
        let number = |path: &str| {
            let number = value_at(&self.content, path).and_then(Value::as_i64);
            i32::try_from(number.unwrap_or_default()).unwrap_or(i32::MAX)
        };
        let selector = value_at(&self.content, &paths.selector).and_then(Value::as_str);
        Some(Replicas {
            unknown: check_number(&self.content, &paths.spec).err(),
            desired: number(&paths.spec),
            observed: number(&paths.status),
            selector: selector.and_then(|text| Selector::parse(text).ok()),
        })
    }

    fn set_replicas(&mut self, replicas: i32) {
        if let Some(paths) = scale_paths(self) {
            set_at(&mut self.content, &paths.spec, replicas.into());
        }
    }

    fn waits(&self, _records: &Records<'_>) -> Vec<Wait> {
        waits::waits(self)
    }
}

/// Returns the warning about a finalizer without a domain and a path.
fn finalizer_warning(name: &str) -> String {
    let path = match name.contains('.') {
        true => " including a path (/)",
        false => "",
    };
    format!(
        "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
    )
}

/// Calls `change` with the schema and the object as JSON, except that its metadata is left out. Does nothing without a
/// schema.
fn with_schema(object: &mut CustomObject, change: impl FnOnce(&Schema, &mut Value)) {
    let definition = object.kind().definition();
    let version = definition.custom.as_ref();
    let Some(schema) = version.and_then(|version| version.schema()) else {
        return;
    };
    let mut document = Value::Object(std::mem::take(&mut object.content));
    change(schema, &mut document);
    if let Value::Object(content) = document {
        object.content = content;
    }
}

fn validate(new: &CustomObject, old: Option<&CustomObject>, errors: &mut FieldErrors) {
    let definition = new.kind().definition();
    let version = definition.custom.as_ref();
    if let Some(schema) = version.and_then(|version| version.schema()) {
        let old = old.map(CustomObject::document);
        let (new, mut forgiven) = (new.document(), Vec::new());
        for violation in schema.validate_and_forgive(&new, old.as_ref(), &mut forgiven) {
            errors.violation(&violation);
        }
        for violation in forgiven {
            errors.forgive(&violation);
        }
    }
}

fn has_status(object: &CustomObject) -> bool {
    object.kind().has_subresource(STATUS)
}

fn scale_paths(object: &CustomObject) -> Option<ScalePaths> {
    object.kind().definition().custom.as_ref()?.scale.clone()
}

/// Sets a field to its value in `old`.
fn restore(new: &mut Map<String, Value>, old: &Map<String, Value>, name: &str) {
    match old.get(name) {
        Some(value) => drop(new.insert(name.to_owned(), value.clone())),
        None => drop(new.remove(name)),
    }
}

/// Returns the names in a path such as `.spec.replicas`.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('.').filter(|name| !name.is_empty())
}

fn value_at<'v>(content: &'v Map<String, Value>, path: &str) -> Option<&'v Value> {
    let mut names = names(path);
    let first = content.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// Checks that there is an integer at the path of the wanted replicas. The messages are upstream's.
fn check_number(content: &Map<String, Value>, path: &str) -> Result<(), String> {
    let expected = match value_at(content, path) {
        None => return Err(format!("the spec replicas field {path:?} does not exist")),
        Some(value) if value.is_i64() => return Ok(()),
        Some(Value::Null) => "<nil> is of the type <nil>".to_owned(),
        Some(Value::Bool(value)) => format!("{value} is of the type bool"),
        Some(Value::Number(value)) => format!("{value} is of the type float64"),
        Some(Value::String(value)) => format!("{value} is of the type string"),
        Some(Value::Array(_)) => "the value is of the type []interface {}".to_owned(),
        Some(Value::Object(_)) => "the value is of the type map[string]interface {}".to_owned(),
    };
    Err(format!("{path} accessor error: {expected}, expected int64"))
}

/// Sets the value at a path. Objects on the way that are missing are made.
fn set_at(content: &mut Map<String, Value>, path: &str, value: Value) {
    let names: Vec<&str> = names(path).collect();
    let Some((last, parents)) = names.split_last() else {
        return;
    };
    let mut object = content;
    for name in parents {
        let child = object.entry(*name).or_insert_with(|| Map::new().into());
        let Value::Object(child) = child else { return };
        object = child;
    }
    object.insert((*last).to_owned(), value);
}
