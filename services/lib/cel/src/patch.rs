//! Typed objects that the expressions of mutating policies make: `Object{…}`, whose parts have the names of their
//! fields as types (`Object.spec`), and `JSONPatch{op, path, from, value}`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value as Json};

use super::equality::equal;
use super::expr::SelectKind;
use super::meter::{Failure, Meter, scan};
use super::time;
use super::types::Type;
use super::values::{Key, Val};

/// The type of an object.
pub(super) const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
const JSON_PATCH: &str = "JSONPatch";
const VALUE: &str = "value";
/// The doubles that are exact whole numbers are smaller.
const SAFE: f64 = 9_007_199_254_740_992.0;
/// The fields of an operation that are strings.
const TEXTS: [&str; 3] = ["op", "path", "from"];

/// A typed object.
#[derive(Clone, Debug)]
pub(super) struct Struct<'a> {
    name: Arc<str>,
    fields: Arc<BTreeMap<Arc<str>, Val<'a>>>,
}

/// Whether a name is that of a type of objects.
pub(super) fn is_type(name: &str) -> bool {
    let part = name.strip_prefix(OBJECT);
    name == JSON_PATCH || part.is_some_and(|part| part.is_empty() || part.starts_with('.'))
}

/// Returns the type of a field. Those of objects are not declared: an object is checked against its schema when it is
/// applied.
pub(super) fn field(of: &str, name: &str) -> Option<Type<'static>> {
    match (of, name) {
        (JSON_PATCH, VALUE) => Some(Type::Dyn),
        (JSON_PATCH, name) => TEXTS.contains(&name).then_some(Type::String),
        _ => Some(Type::Dyn),
    }
}

pub(super) fn is_object(ty: &Type<'_>) -> bool {
    matches!(ty, Type::Struct(name) if &**name == OBJECT)
}

pub(super) fn is_json_patch(ty: &Type<'_>) -> bool {
    matches!(ty, Type::Struct(name) if &**name == JSON_PATCH)
}

impl<'a> Struct<'a> {
    /// Returns an object. Empty texts of an operation are not set.
    pub(super) fn new(name: Arc<str>, mut fields: BTreeMap<Arc<str>, Val<'a>>) -> Self {
        if &*name == JSON_PATCH {
            let is_empty = |value: &Val<'_>| matches!(value, Val::String(text) if text.is_empty());
            fields.retain(|field, value| !TEXTS.contains(&&**field) || !is_empty(value));
        }
        let fields = Arc::new(fields);
        Self { name, fields }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns a field. The value of one that is not set is null, or an empty text.
    pub(super) fn select(&self, field: &Val<'_>, kind: SelectKind) -> Option<Val<'a>> {
        let Val::String(field) = field else {
            return None;
        };
        let found = self.fields.get(&**field).cloned();
        found.or_else(|| {
            let is_text = &*self.name == JSON_PATCH && TEXTS.contains(&&**field);
            (kind == SelectKind::Value).then(|| match is_text {
                true => Val::from(""),
                false => Val::Null,
            })
        })
    }

    /// Whether two objects have the same type and equal fields.
    pub(super) fn equals(&self, other: &Self, meter: &mut Meter) -> Result<bool, Failure> {
        if self.name != other.name || self.fields.len() != other.fields.len() {
            return Ok(false);
        }
        for (name, value) in &*self.fields {
            let same = match other.fields.get(name) {
                Some(other) => equal(value, other, meter)?,
                None => false,
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that the types of the objects in an object are those of their fields, below its own type.
    fn check(&self, meter: &mut Meter) -> Result<(), Failure> {
        let mut problems = Vec::new();
        self.check_as(&self.name, meter, &mut problems)?;
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::Error(format!(
                "type mismatch: {}",
                problems.join("\n")
            ))),
        }
    }

    fn check_as(
        &self,
        wanted: &str,
        meter: &mut Meter,
        problems: &mut Vec<String>,
    ) -> Result<(), Failure> {
        if *self.name != *wanted {
            let name = &self.name;
            problems.push(format!(
                "unexpected type name {name:?}, expected {wanted:?}, which matches field name path from root Object type"
            ));
        }
        for (name, value) in &*self.fields {
            check(value, &format!("{wanted}.{name}"), meter, problems)?;
        }
        Ok(())
    }

    /// Returns an operation of a JSON patch.
    fn operation(&self, meter: &mut Meter) -> Result<Json, Failure> {
        let mut operation = Map::new();
        for name in TEXTS {
            let text = self.fields.get(name);
            let text = text.map(|text| json(text, meter)).transpose()?;
            match (name, text) {
                ("from", None) => {}
                (name, text) => {
                    operation.insert(name.to_owned(), text.unwrap_or_else(|| "".into()));
                }
            }
        }
        if let Some(value) = self.fields.get(VALUE) {
            if let Val::Struct(object) = value {
                object.check(meter)?;
            }
            operation.insert(VALUE.to_owned(), json(value, meter)?);
        }
        Ok(operation.into())
    }
}

/// Checks the objects in a value. Lists and maps have no types of their own.
fn check(
    value: &Val<'_>,
    wanted: &str,
    meter: &mut Meter,
    problems: &mut Vec<String>,
) -> Result<(), Failure> {
    meter.spend(1 + scan(wanted.len() as u64))?;
    match value {
        Val::Struct(object) => object.check_as(wanted, meter, problems),
        Val::List(list) => list
            .iter()
            .try_for_each(|item| check(&item?, wanted, meter, problems)),
        Val::Map(map) => map.keys().iter().try_for_each(|key| match map.get(key)? {
            Some(value) => check(&value, wanted, meter, problems),
            None => Ok(()),
        }),
        _ => Ok(()),
    }
}

/// Returns a patch: an object that is to be applied, or a list of operations.
pub(super) fn document(value: &Val<'_>, meter: &mut Meter) -> Result<Json, Failure> {
    match value {
        Val::Struct(object) => {
            object.check(meter)?;
            json(value, meter)
        }
        Val::List(list) => {
            let operations = list.iter().map(|item| match item? {
                Val::Struct(operation) => operation.operation(meter),
                _ => Err(Failure::NoOverload),
            });
            operations.collect()
        }
        _ => Err(Failure::NoOverload),
    }
}

/// Returns a value as JSON. Every value is paid: those that are shared are written again.
pub(super) fn json(value: &Val<'_>, meter: &mut Meter) -> Result<Json, Failure> {
    meter.spend(1)?;
    let mut text = |text: String| {
        meter.spend(scan(text.len() as u64))?;
        Ok(Json::String(text))
    };
    match value {
        Val::Null => Ok(Json::Null),
        Val::Bool(flag) => Ok(Json::Bool(*flag)),
        Val::Int(int) => Ok((*int).into()),
        Val::Uint(int) => Ok((*int).into()),
        Val::Double(double) => number(*double).ok_or_else(|| unfit("double")),
        Val::String(found) => text((**found).to_owned()),
        Val::Pattern(pattern) => text(pattern.source().to_owned()),
        Val::Bytes(bytes) => text(STANDARD.encode(bytes)),
        Val::Timestamp(at) => text(at.to_string()),
        Val::Duration(nanos) => text(time::seconds(*nanos)),
        Val::List(list) => list.iter().map(|item| json(&item?, meter)).collect(),
        Val::Map(map) => {
            let mut fields = Map::new();
            for key in map.keys() {
                let value = map.get(&key)?.unwrap_or(Val::Null);
                let Some(Key::String(name)) = Key::of(&key) else {
                    return Err(Failure::error("map key is not a string"));
                };
                fields.insert((*name).to_owned(), json(&value, meter)?);
            }
            Ok(fields.into())
        }
        Val::Struct(object) => {
            let mut fields = Map::new();
            for (name, value) in &*object.fields {
                fields.insert((**name).to_owned(), json(value, meter)?);
            }
            Ok(fields.into())
        }
        Val::Unknown(found) => {
            meter.spend(scan(found.to_string().len() as u64))?;
            Ok((*found).clone())
        }
        other => Err(unfit(other.type_name())),
    }
}

/// Returns a double as JSON, which writes whole numbers as such; None if it is no number.
fn number(double: f64) -> Option<Json> {
    match crate::go::is_integer(double) && double.abs() < SAFE {
        true => Some((double as i64).into()),
        false => Number::from_f64(double).map(Json::Number),
    }
}

fn unfit(type_name: &str) -> Failure {
    Failure::Error(format!(
        "type conversion error from '{type_name}' to 'google.protobuf.Value'"
    ))
}

#[cfg(test)]
mod tests;
