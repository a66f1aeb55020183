//! Strategic merge patches, which merge lists by key. Semantics and directives are those of Kubernetes:
//!
//! * `$patch: replace` or `delete` in an object or list entry,
//! * `$retainKeys: [names]` drops all other fields of an object,
//! * `$deleteFromPrimitiveList/<field>: [values]`,
//! * `$setElementOrder/<field>: [entries]`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::budget::Budget;
use super::{Error, lists};
use crate::Kind;
use crate::rules::{self, Field, Message};

pub(super) const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

pub(super) type Object = Map<String, Value>;

/// Applies a strategic merge patch.
///
/// # Errors
/// If a directive is malformed, an entry lacks the merge key of its list, or the patch exceeds the limit of work.
pub fn strategic(kind: &Kind, document: Value, patch: Value) -> Result<Value, Error> {
    let (Value::Object(document), Value::Object(patch)) = (document, patch) else {
        return Err(Error::Malformed(
            "invalid JSON document: a strategic merge patch must be an object".to_owned(),
        ));
    };
    let schema = rules::message(kind.message.full_name()).map_or(Schema::Free, Schema::Message);
    merge_object(document, patch, schema, &mut Budget::new()).map(Value::Object)
}

/// The rules for the fields of an object.
#[derive(Clone, Copy)]
pub(super) enum Schema {
    Message(&'static Message),
    /// A map whose values are the elements of this field.
    Map(&'static Field),
    /// No rules: lists are replaced.
    Free,
}

impl Schema {
    fn field(self, key: &str) -> Option<&'static Field> {
        match self {
            Self::Message(message) => message.field(key),
            Self::Map(_) | Self::Free => None,
        }
    }

    /// Returns the rules of the value of a key.
    fn child(self, key: &str) -> Self {
        match self {
            Self::Map(field) => Self::element(field),
            _ => match self.field(key) {
                Some(map) if map.descriptor.is_map() => Self::Map(map),
                Some(field) => Self::element(field),
                None => Self::Free,
            },
        }
    }

    pub(super) fn element(field: &'static Field) -> Self {
        field.message().map_or(Self::Free, Self::Message)
    }
}

/// Merges a patch into an object.
pub(super) fn merge_object(
    mut original: Object,
    mut patch: Object,
    schema: Schema,
    budget: &mut Budget,
) -> Result<Object, Error> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(object_without_directives(patch)),
            Some("delete") => Ok(Object::new()),
            _ => Err(bad_directive(&directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch, budget)?;
    set_orders(&mut original, &mut patch, schema, budget)?;
    for (key, value) in patch {
        match key.strip_prefix(DELETE_FROM_LIST) {
            Some(list) => lists::delete_from(original.get_mut(list), &value, budget)?,
            None => merge_field(&mut original, key, value, schema, budget)?,
        }
    }
    Ok(original)
}

fn merge_field(
    original: &mut Object,
    key: String,
    patch: Value,
    schema: Schema,
    budget: &mut Budget,
) -> Result<(), Error> {
    let field = schema.field(&key);
    let replaces = field.is_some_and(Field::replaces);
    let merged = match (original.remove(&key), patch) {
        (_, Value::Null) => return Ok(()),
        (Some(Value::Object(old)), Value::Object(new)) if !replaces => {
            Value::Object(merge_object(old, new, schema.child(&key), budget)?)
        }
        (Some(Value::Array(old)), Value::Array(new)) => {
            match field.filter(|field| field.merges()) {
                Some(field) => Value::Array(lists::merge(old, new, field, budget)?),
                None => without_directives(Value::Array(new)),
            }
        }
        (_, new) => without_directives(new),
    };
    original.insert(key, merged);
    Ok(())
}

/// Removes nulls and directives from a value that is new in the document.
pub(super) fn without_directives(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(object_without_directives(object)),
        Value::Array(items) => {
            let entries = items.into_iter().filter(|item| item.get(PATCH).is_none());
            entries.map(without_directives).collect()
        }
        scalar => scalar,
    }
}

fn object_without_directives(object: Object) -> Object {
    let fields = object
        .into_iter()
        .filter(|(key, value)| !value.is_null() && !is_directive(key));
    fields
        .map(|(key, value)| (key, without_directives(value)))
        .collect()
}

fn is_directive(key: &str) -> bool {
    key == PATCH
        || key == RETAIN_KEYS
        || key.starts_with(DELETE_FROM_LIST)
        || key.starts_with(SET_ORDER)
}

fn retain_keys(
    original: &mut Object,
    patch: &mut Object,
    budget: &mut Budget,
) -> Result<(), Error> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let malformed = || Error::Malformed("invalid patch format of retainKeys".to_owned());
    let names = retained.as_array().ok_or_else(malformed)?;
    let kept: HashSet<_> = names.iter().filter_map(Value::as_str).collect();
    let is_not_retained = |(key, value): (&String, &Value)| {
        !(value.is_null() || is_directive(key) || kept.contains(key.as_str()))
    };
    if patch.iter().any(is_not_retained) {
        let message = "patch content doesn't match retainKeys list";
        return Err(Error::Unfit(message.to_owned()));
    }
    budget.spend(original.keys().map(String::len).sum())?;
    original.retain(|key, _| kept.contains(key.as_str()));
    Ok(())
}

/// Executes `$setElementOrder` directives and merges the lists that they name.
fn set_orders(
    original: &mut Object,
    patch: &mut Object,
    schema: Schema,
    budget: &mut Budget,
) -> Result<(), Error> {
    let directives: Vec<String> = patch
        .keys()
        .filter(|key| key.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in directives {
        let order = patch.remove(&directive);
        let key = &directive[SET_ORDER.len()..];
        let changes = patch.remove(key).filter(|changes| !changes.is_null());
        let list = original.remove(key);
        if list.is_none() && changes.is_none() {
            continue;
        }
        let order = array(key, order)?;
        let field = schema.field(key);
        let (list, changes) = (array(key, list)?, array(key, changes)?);
        let ordered = lists::reorder(list, changes, order, field, budget)?;
        original.insert(key.to_owned(), Value::Array(ordered));
    }
    Ok(())
}

fn array(key: &str, value: Option<Value>) -> Result<Vec<Value>, Error> {
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(Error::Malformed(format!(
            "expected a list in field {key:?} of the patch"
        ))),
    }
}

pub(super) fn bad_directive(directive: &Value, object: &Object) -> Error {
    let directive = directive
        .as_str()
        .map_or_else(|| directive.to_string(), str::to_owned);
    let object = Value::Object(object.clone());
    Error::Unfit(format!("unknown patch type: {directive} in map: {object}"))
}
