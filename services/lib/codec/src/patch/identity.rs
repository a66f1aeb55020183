//! The identities of the entries of lists: a merge key or, for scalars, the value.

use std::collections::HashMap;

use serde_json::Value;

use super::Error;
use super::strategic::PATCH;
use crate::rules::Field;

/// The identity of the entries of a list: a merge key, or the value itself.
#[derive(Clone, Copy)]
pub(super) enum Identity {
    Key(&'static str),
    Value,
}

impl Identity {
    /// Returns the identity for a field, and checks that all entries have its merge key.
    pub fn of(field: &'static Field, entries: &[Value]) -> Result<Self, Error> {
        let key = match (field.message(), field.merge_key.as_str()) {
            (None, _) => return Ok(Self::Value),
            (Some(_), "") => {
                let name = field.descriptor.json_name();
                let message = format!("cannot merge lists without merge key for {name}");
                return Err(Error::Malformed(message));
            }
            (Some(_), key) => key,
        };
        let lacks_key = |entry: &&Value| entry.get(key).is_none() && !replaces(entry);
        match entries.iter().find(lacks_key) {
            Some(entry) => Err(Error::Malformed(format!(
                "map: {entry} does not contain declared merge key: {key}"
            ))),
            None => Ok(Self::Key(key)),
        }
    }

    fn name(self, entry: &Value) -> &Value {
        match self {
            Self::Key(key) => entry.get(key).unwrap_or(&Value::Null),
            Self::Value => entry,
        }
    }

    /// Returns the number of bytes that are compared to identify the entries.
    pub fn compared_bytes(self, entries: &[Value]) -> usize {
        let sizes = entries.iter().map(|entry| {
            size_of::<Value>()
                + match self.name(entry) {
                    Value::String(text) => text.len(),
                    other => other.to_string().len(),
                }
        });
        sizes.sum()
    }
}

/// The numbers of identities, in the order in which they were first seen. Each entry is identified once; what follows
/// compares numbers.
pub(super) struct Numbers<'v> {
    identity: Identity,
    of_names: HashMap<&'v Value, usize>,
}

impl<'v> Numbers<'v> {
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            of_names: HashMap::new(),
        }
    }

    /// Returns the number of each entry.
    pub fn of(&mut self, entries: &'v [Value]) -> Vec<usize> {
        self.of_names.reserve(entries.len());
        let names = entries.iter().map(|entry| self.identity.name(entry));
        let numbers = names.map(|name| {
            let next = self.of_names.len();
            *self.of_names.entry(name).or_insert(next)
        });
        numbers.collect()
    }

    /// Returns the number of identities.
    pub fn len(&self) -> usize {
        self.of_names.len()
    }
}

/// An entry, and the number of its identity.
pub(super) struct Entry {
    pub number: usize,
    pub value: Value,
}

impl Entry {
    /// Returns the position of its identity in the original list, compared with others, if that had `known` ones.
    pub fn before(&self, known: usize) -> Option<usize> {
        (self.number < known).then_some(self.number)
    }
}

pub(super) fn entries(values: Vec<Value>, numbers: Vec<usize>) -> Vec<Entry> {
    let numbered = numbers.into_iter().zip(values);
    numbered
        .map(|(number, value)| Entry { number, value })
        .collect()
}

/// Returns, for each number below `count`, its first position.
pub(super) fn positions(
    numbers: impl IntoIterator<Item = usize>,
    count: usize,
) -> Vec<Option<usize>> {
    let mut positions = vec![None; count];
    for (at, number) in numbers.into_iter().enumerate() {
        positions[number].get_or_insert(at);
    }
    positions
}

/// Returns whether an entry is the directive that replaces the list.
pub(super) fn replaces(entry: &Value) -> bool {
    entry
        .get(PATCH)
        .is_some_and(|directive| directive == "replace")
}
