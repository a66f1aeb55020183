//! Kubernetes' reading of JSON: `null` is unset everywhere, and a message is an object, never an array.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// Whether it is the default value.
pub fn is_zero<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A scalar.
pub fn scalar<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A list of scalars.
pub fn list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Option<T>> = scalar(deserializer)?;
    Ok(items.into_iter().map(Option::unwrap_or_default).collect())
}

/// A map of scalars.
pub fn map<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    let items: BTreeMap<String, Option<T>> = scalar(deserializer)?;
    let items = items.into_iter();
    Ok(items
        .map(|(key, item)| (key, item.unwrap_or_default()))
        .collect())
}

/// A message that is always there.
pub fn object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Object::deserialize(deserializer)?.0)
}

/// A message that may be missing.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Object(message)| message))
}

/// A list of messages.
pub fn object_list<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Object<T>> = scalar(deserializer)?;
    Ok(items.into_iter().map(|Object(message)| message).collect())
}

/// A message, read from an object only: derived code would also take an array, as its fields in order.
struct Object<T>(T);

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
