//! Lists in a strategic merge patch. Entries are identified by their merge key or, for scalars, by their value.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Error;
use super::budget::Budget;
use super::strategic::{Object, PATCH, Schema, bad_directive, merge_object, without_directives};
use crate::rules::Field;

/// Merges the entries of a patch into a list.
///
/// Entries of the patch are in the patch's order; the others keep their positions.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &'static Field,
    budget: &mut Budget,
) -> Result<Vec<Value>, Error> {
    let identity = Identity::of(field, &patch)?;
    budget.spend(identity.compared_bytes(&original))?;
    let before = identity.index(&original);
    let (merged, changes) = apply(original, patch, field, identity, budget)?;
    Ok(arrange(
        merged,
        &identity.index(&changes),
        &before,
        identity,
    ))
}

/// Merges the entries of a patch into a list and sorts it by `order`.
///
/// Entries that are not in `order` keep their positions relative to the entries that followed them.
pub(super) fn reorder(
    original: Vec<Value>,
    patch: Vec<Value>,
    order: Vec<Value>,
    field: Option<&'static Field>,
    budget: &mut Budget,
) -> Result<Vec<Value>, Error> {
    let Some(field) = field else {
        return Ok(if patch.is_empty() { original } else { patch });
    };
    let identity = Identity::of(field, &order)?;
    Identity::of(field, &patch)?;
    let order = identity.index(&order);
    check_order(&patch, &order, identity)?;
    budget.spend(identity.compared_bytes(&original))?;
    let before = identity.index(&original);
    let merged = match (patch.is_empty(), field.merges()) {
        (true, _) => original,
        (false, true) => apply(original, patch, field, identity, budget)?.0,
        (false, false) => patch,
    };
    Ok(arrange(merged, &order, &before, identity))
}

/// Deletes values from a list of scalars. Does nothing if there is no list.
pub(super) fn delete_from(
    list: Option<&mut Value>,
    values: &Value,
    budget: &mut Budget,
) -> Result<(), Error> {
    let Value::Array(values) = values else {
        return Err(Error::Malformed(
            "invalid patch format of primitive list".to_owned(),
        ));
    };
    if let Some(Value::Array(list)) = list {
        budget.spend(Identity::Value.compared_bytes(list))?;
        let deleted: HashSet<String> = values.iter().map(Value::to_string).collect();
        list.retain(|item| !deleted.contains(&item.to_string()));
    }
    Ok(())
}

/// The position of each entry by its identity.
type Index = HashMap<String, usize>;

/// The identity of the entries of a list: a merge key, or the value itself.
#[derive(Clone, Copy)]
enum Identity {
    Key(&'static str),
    Value,
}

impl Identity {
    /// Returns the identity for a field, and checks that all entries have its merge key.
    fn of(field: &'static Field, entries: &[Value]) -> Result<Self, Error> {
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

    fn name(self, entry: &Value) -> String {
        match self {
            Self::Key(key) => entry.get(key).unwrap_or(&Value::Null).to_string(),
            Self::Value => entry.to_string(),
        }
    }

    /// Returns the number of bytes that are compared to identify the entries.
    fn compared_bytes(self, entries: &[Value]) -> usize {
        let sizes = entries
            .iter()
            .map(|entry| size_of::<Value>() + self.name(entry).len());
        sizes.sum()
    }

    /// Returns the position of each entry; of entries with the same identity, the first.
    fn index(self, entries: &[Value]) -> Index {
        let mut index = Index::new();
        for (at, entry) in entries.iter().enumerate() {
            index.entry(self.name(entry)).or_insert(at);
        }
        index
    }
}

fn replaces(entry: &Value) -> bool {
    entry
        .get(PATCH)
        .is_some_and(|directive| directive == "replace")
}

/// Returns the list with the entries of the patch merged or appended, and those entries without directives.
fn apply(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    field: &'static Field,
    identity: Identity,
    budget: &mut Budget,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let (directives, changes): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|entry| entry.get(PATCH).is_some());
    if apply_directives(&directives, &mut original, identity)? {
        return Ok((changes.clone(), changes));
    }
    let mut index = identity.index(&original);
    for change in &changes {
        let at = *index.entry(identity.name(change)).or_insert(original.len());
        match (original.get_mut(at), change) {
            (Some(old), Value::Object(change)) => {
                let merged = merge_object(
                    as_object(old.take()),
                    change.clone(),
                    Schema::element(field),
                    budget,
                )?;
                *old = Value::Object(merged);
            }
            (Some(_), _) => {}
            (None, new) => original.push(without_directives(new.clone())),
        }
    }
    Ok((original, changes))
}

/// Executes `delete` directives. Returns whether the patch replaces the whole list.
fn apply_directives(
    directives: &[Value],
    original: &mut Vec<Value>,
    identity: Identity,
) -> Result<bool, Error> {
    let mut deleted = HashSet::new();
    for entry in directives {
        match entry[PATCH].as_str() {
            Some("delete") => drop(deleted.insert(identity.name(entry))),
            Some("replace") => {}
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(Error::Malformed(message.to_owned()));
            }
            _ => return Err(bad_directive(&entry[PATCH], &as_object(entry.clone()))),
        }
    }
    original.retain(|entry| !deleted.contains(&identity.name(entry)));
    Ok(directives.iter().any(replaces))
}

fn as_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Checks that the entries of the patch are in the order of its own directive.
fn check_order(patch: &[Value], order: &Index, identity: Identity) -> Result<(), Error> {
    let named = patch.iter().filter(|entry| entry.get(PATCH).is_none());
    let positions: Vec<_> = named
        .map(|entry| order.get(&identity.name(entry)))
        .collect();
    match positions.iter().all(Option::is_some) && positions.is_sorted() {
        true => Ok(()),
        false => Err(Error::Malformed(
            "the order in the patch list doesn't match the $setElementOrder list".to_owned(),
        )),
    }
}

/// An entry and its original position.
type Positioned = (Option<usize>, Value);

/// Sorts entries by `order`. Entries that are not in it stay before those that they preceded originally.
fn arrange(merged: Vec<Value>, order: &Index, before: &Index, identity: Identity) -> Vec<Value> {
    let mut named: Vec<(usize, Positioned)> = Vec::new();
    let mut others: Vec<Positioned> = Vec::new();
    for entry in merged {
        let name = identity.name(&entry);
        let positioned = (before.get(&name).copied(), entry);
        match order.get(&name) {
            Some(&position) => named.push((position, positioned)),
            None => others.push(positioned),
        }
    }
    named.sort_by_key(|&(position, _)| position);
    others.sort_by_key(|&(before, _)| before);
    interleave(named.into_iter().map(|(_, positioned)| positioned), others)
}

fn interleave(named: impl Iterator<Item = Positioned>, others: Vec<Positioned>) -> Vec<Value> {
    let goes_first = |&(other, _): &Positioned, &(named, _): &Positioned| {
        other.zip(named).is_some_and(|(other, named)| other < named)
    };
    let (mut named, mut others) = (named.peekable(), others.into_iter().peekable());
    let mut arranged = Vec::new();
    loop {
        let other_is_next = match (others.peek(), named.peek()) {
            (Some(other), Some(named)) => goes_first(other, named),
            (None, None) => return arranged,
            (other, _) => other.is_some(),
        };
        let next = if other_is_next {
            others.next()
        } else {
            named.next()
        };
        arranged.extend(next.map(|(_, entry)| entry));
    }
}
