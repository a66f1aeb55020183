//! The fields of a new object, found while it is serialized, without its JSON: most objects are created and never applied.

use std::borrow::Cow;
use std::fmt::{Display, Error};

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};
use serde_json::{Map, Value};

use super::element::{PathElement, equal};
use super::set::{FieldSet, Node};
use super::shape::{Shape, Structure};
use crate::Kind;

/// Returns the fields in which a new object differs from one without any, as a comparison of both would. `None` if they
/// cannot be found in one pass, for example because a list has two entries of the same key.
pub(crate) fn added(kind: &'static Kind, object: &impl Serialize) -> Option<FieldSet> {
    let structure = Structure::of(kind);
    let root = Added {
        shape: structure.shape(),
        empty: Some(kind.empty_document()),
        list: None,
    };
    object.serialize(root).ok().map(|found| found.below)
}

/// The part of the set that is found in one value.
#[derive(Default)]
struct Found {
    is_member: bool,
    below: FieldSet,
    /// The keys of an entry of a list.
    keys: Vec<(Cow<'static, str>, Value)>,
}

impl Found {
    /// Returns what a value adds that is only compared as a whole.
    fn whole(is_member: bool) -> Self {
        Self {
            is_member,
            ..Self::default()
        }
    }
}

/// A serializer of a value that does not write it.
#[derive(Clone, Copy)]
struct Added<'s> {
    shape: Shape<'s>,
    /// The value that an object without any fields has in its place.
    empty: Option<&'static Value>,
    /// The list whose entry it is, if that has keys.
    list: Option<Shape<'s>>,
}

impl<'s> Added<'s> {
    /// Returns the path element of a field, and the serializer of its value.
    fn child(self, name: &str) -> (PathElement, Self) {
        let (element, shape) = self.shape.named(name);
        let empty = self.empty.and_then(|empty| empty.get(name));
        let child = Self {
            shape,
            empty,
            list: None,
        };
        (element, child)
    }

    /// Returns what a value owned as a whole adds.
    fn leaf(self, value: &Value) -> Found {
        Found::whole(self.empty.is_none_or(|empty| !equal(empty, value)))
    }

    fn scalar(self, value: impl Serialize) -> Result<Found, Error> {
        match (self.shape, self.empty) {
            (Shape::Leaf, None) => Ok(Found::whole(true)),
            (Shape::Leaf, Some(_)) => Ok(self.leaf(&json(&value)?)),
            _ => Err(Error),
        }
    }

    /// Returns what an object or list with these nodes adds.
    fn parent(self, nodes: Vec<Node>, has_entries: bool, none: &Value) -> Found {
        if !has_entries {
            return self.leaf(none);
        }
        Found {
            is_member: self.empty.is_none(),
            below: FieldSet::of_nodes(nodes),
            keys: Vec::new(),
        }
    }

    fn object(self) -> Object<'s> {
        Object {
            added: self,
            nodes: Vec::new(),
            keys: Vec::new(),
            has_entries: false,
            whole: Map::new(),
            key: String::new(),
        }
    }

    /// Returns whether the value is compared with another one as a whole.
    const fn is_compared(self) -> bool {
        matches!((self.shape, self.empty), (Shape::Leaf, Some(_)))
    }
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(|_| Error)
}

macro_rules! scalars {
    ($($method:ident: $type:ty,)*) => {$(
        fn $method(self, value: $type) -> Result<Found, Error> {
            self.scalar(value)
        }
    )*};
}

impl<'s> Serializer for Added<'s> {
    type Ok = Found;
    type Error = Error;
    type SerializeSeq = List<'s>;
    type SerializeTuple = Impossible<Found, Error>;
    type SerializeTupleStruct = Impossible<Found, Error>;
    type SerializeTupleVariant = Impossible<Found, Error>;
    type SerializeMap = Object<'s>;
    type SerializeStruct = Object<'s>;
    type SerializeStructVariant = Impossible<Found, Error>;

    scalars! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
    }

    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<Found, Error> {
        match self.is_compared() {
            true => self.scalar(value.to_string()),
            false => self.scalar(()),
        }
    }

    fn serialize_none(self) -> Result<Found, Error> {
        Ok(self.leaf(&Value::Null))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Found, Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Found, Error> {
        Ok(self.leaf(&Value::Null))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Found, Error> {
        Ok(self.leaf(&Value::Null))
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Found, Error> {
        self.scalar(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Found, Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Found, Error> {
        Err(Error)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List<'s>, Error> {
        Ok(List {
            added: self,
            nodes: Vec::new(),
            whole: Vec::new(),
        })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Error> {
        Err(Error)
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        Err(Error)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(Error)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object<'s>, Error> {
        Ok(self.object())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Object<'s>, Error> {
        Ok(self.object())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(Error)
    }
}

/// An object or map that is being serialized.
struct Object<'s> {
    added: Added<'s>,
    nodes: Vec<Node>,
    keys: Vec<(Cow<'static, str>, Value)>,
    has_entries: bool,
    /// The value, if it is compared as a whole.
    whole: Map<String, Value>,
    /// The key of the next value of a map.
    key: String,
}

impl Object<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), Error> {
        if self.added.is_compared() {
            self.whole.insert(name.to_owned(), json(value)?);
            return Ok(());
        }
        self.has_entries = true;
        let is_key = self.added.list.is_some_and(|list| list.is_key(name));
        if matches!(self.added.shape, Shape::Leaf) && !is_key {
            return Ok(());
        }
        let (element, child) = self.added.child(name);
        if let (true, PathElement::Field(name)) = (is_key, &element) {
            self.keys.push((name.clone(), json(value)?));
            self.nodes.push(member(element, FieldSet::default()));
            return Ok(());
        }
        let found = value.serialize(child)?;
        if found.is_member || !found.below.is_empty() {
            self.nodes.push(Node {
                element,
                is_member: found.is_member,
                below: found.below,
            });
        }
        Ok(())
    }

    fn found(self) -> Found {
        let nodes = match self.added.shape {
            _ if self.added.is_compared() => return self.added.leaf(&Value::Object(self.whole)),
            // The fields of a value that is owned as a whole are not.
            Shape::Leaf => Vec::new(),
            _ => self.nodes,
        };
        let none = Value::Object(Map::new());
        Found {
            keys: self.keys,
            ..self.added.parent(nodes, self.has_entries, &none)
        }
    }
}

impl SerializeMap for Object<'_> {
    type Ok = Found;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        match json(key)? {
            Value::String(key) => self.key = key,
            _ => return Err(Error),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let key = std::mem::take(&mut self.key);
        self.field(&key, value)
    }

    fn end(self) -> Result<Found, Error> {
        Ok(self.found())
    }
}

impl SerializeStruct for Object<'_> {
    type Ok = Found;
    type Error = Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.field(key, value)
    }

    fn end(self) -> Result<Found, Error> {
        Ok(self.found())
    }
}

/// A list that is being serialized.
struct List<'s> {
    added: Added<'s>,
    nodes: Vec<Node>,
    /// The value, if it is compared as a whole.
    whole: Vec<Value>,
}

impl List<'_> {
    fn entry<T: Serialize + ?Sized>(&self, value: &T) -> Result<Node, Error> {
        let list = self.added.shape;
        if !list.has_keys() {
            let element = list.entry(&json(value)?).map_err(|_| Error)?;
            return Ok(member(element, FieldSet::default()));
        }
        let entry = Added {
            shape: list.entries(),
            empty: None,
            list: Some(list),
        };
        let found = value.serialize(entry)?;
        let element = list.with_keys(found.keys).map_err(|_| Error)?;
        Ok(member(element, found.below))
    }
}

impl SerializeSeq for List<'_> {
    type Ok = Found;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        match self.added.shape {
            _ if self.added.is_compared() => self.whole.push(json(value)?),
            Shape::Leaf => {}
            _ => self.nodes.push(self.entry(value)?),
        }
        Ok(())
    }

    fn end(self) -> Result<Found, Error> {
        match self.added.shape {
            _ if self.added.is_compared() => {
                return Ok(self.added.leaf(&Value::Array(self.whole)));
            }
            Shape::Leaf => return Ok(Found::whole(true)),
            _ => {}
        }
        let has_entries = !self.nodes.is_empty();
        let none = Value::Array(Vec::new());
        let found = self.added.parent(self.nodes, has_entries, &none);
        let mut pairs = found.below.nodes().windows(2);
        match pairs.any(|pair| pair[0].element == pair[1].element) {
            true => Err(Error),
            false => Ok(found),
        }
    }
}

const fn member(element: PathElement, below: FieldSet) -> Node {
    Node {
        element,
        is_member: true,
        below,
    }
}
