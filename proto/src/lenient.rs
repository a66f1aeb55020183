//! Deserializes JSON as Kubernetes does: `null` reads as unset everywhere, and messages are objects, not arrays.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Returns whether a value is the default.
pub fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Deserializes a scalar.
pub fn scalar<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserializes a list of scalars.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Option<T>> = scalar(deserializer)?;
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// Deserializes a map of scalars.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let items: BTreeMap<String, Option<T>> = scalar(deserializer)?;
    let items = items.into_iter();
    Ok(items
        .map(|(key, item)| (key, item.unwrap_or_default()))
        .collect())
}

/// Deserializes a message that is always present.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Object::deserialize(deserializer)?.0)
}

/// Deserializes a message that may be unset.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Object(message)| message))
}

/// Deserializes a list of messages.
pub fn object_list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Object<T>> = scalar(deserializer)?;
    Ok(items.into_iter().map(|Object(message)| message).collect())
}

/// A message that is deserialized from an object only. Code derived by serde would accept an array of its fields, too.
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Object(T::default()))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}
