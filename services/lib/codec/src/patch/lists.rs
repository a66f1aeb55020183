//! Lists in a strategic merge: entries are told apart by their merge key, or by their value.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Error;
use super::budget::Budget;
use super::strategic::{Object, PATCH, Schema, bad_directive, merge_object, plain};
use crate::rules::Field;

/// The list with the patch's entries merged in.
///
/// Those that the patch names stand in its order, the others where they stood.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    field: &'static Field,
    budget: &mut Budget,
) -> Result<Vec<Value>, Error> {
    let identity = Identity::of(field, &patch)?;
    budget.spend(identity.weigh(&original))?;
    let before = identity.index(&original);
    let (merged, changes) = apply(original, patch, field, identity, budget)?;
    Ok(arrange(
        merged,
        &identity.index(&changes),
        &before,
        identity,
    ))
}

/// The list with the patch's entries merged in, put in the given order.
///
/// Entries that the order does not name stay near their neighbours.
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
    let order = identity.index(&order);
    check_order(&patch, &order, identity)?;
    budget.spend(identity.weigh(&original))?;
    let before = identity.index(&original);
    let merged = match (patch.is_empty(), field.merges()) {
        (true, _) => original,
        (false, true) => apply(original, patch, field, identity, budget)?.0,
        (false, false) => patch,
    };
    Ok(arrange(merged, &order, &before, identity))
}

/// Takes values out of a list of scalars; a list that is not there has none of them.
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
        budget.spend(Identity::Value.weigh(list))?;
        let gone: HashSet<String> = values.iter().map(Value::to_string).collect();
        list.retain(|item| !gone.contains(&item.to_string()));
    }
    Ok(())
}

/// Where each entry stands.
type Index = HashMap<String, usize>;

/// The merge keys of a list.
#[derive(Clone, Copy)]
enum Identity {
    Key(&'static str),
    Value,
}

impl Identity {
    /// The field's, if each of the entries has one.
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
        let odd = |entry: &&Value| entry.get(key).is_none() && !replaces(entry);
        match entries.iter().find(odd) {
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

    /// The bytes that have to be looked at to tell the entries apart.
    fn weigh(self, entries: &[Value]) -> usize {
        let weights = entries
            .iter()
            .map(|entry| size_of::<Value>() + self.name(entry).len());
        weights.sum()
    }

    /// Of two entries alike the first counts.
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

/// The original with the patch's entries merged in or appended, and those entries without directives.
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
    if carry_out(&directives, &mut original, identity)? {
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
            (None, new) => original.push(plain(new.clone())),
        }
    }
    Ok((original, changes))
}

/// Deletes what the patch says to delete; true when it replaces the whole list.
fn carry_out(
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

/// The patch's entries must stand in the order that it asks for.
fn check_order(patch: &[Value], order: &Index, identity: Identity) -> Result<(), Error> {
    let named = patch.iter().filter(|entry| entry.get(PATCH).is_none());
    let places: Vec<_> = named
        .map(|entry| order.get(&identity.name(entry)))
        .collect();
    match places.iter().all(Option::is_some) && places.is_sorted() {
        true => Ok(()),
        false => Err(Error::Malformed(
            "the order in the patch list doesn't match the $setElementOrder list".to_owned(),
        )),
    }
}

/// An entry, and where it stood before.
type Placed = (Option<usize>, Value);

/// Entries that `order` names stand as it says; the others keep their place before those they stood before.
fn arrange(merged: Vec<Value>, order: &Index, before: &Index, identity: Identity) -> Vec<Value> {
    let mut named: Vec<(usize, Placed)> = Vec::new();
    let mut others: Vec<Placed> = Vec::new();
    for entry in merged {
        let name = identity.name(&entry);
        let placed = (before.get(&name).copied(), entry);
        match order.get(&name) {
            Some(&place) => named.push((place, placed)),
            None => others.push(placed),
        }
    }
    named.sort_by_key(|&(place, _)| place);
    others.sort_by_key(|&(stood, _)| stood);
    interleave(named.into_iter().map(|(_, placed)| placed), others)
}

fn interleave(named: impl Iterator<Item = Placed>, others: Vec<Placed>) -> Vec<Value> {
    let goes_first = |&(other, _): &Placed, &(named, _): &Placed| {
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
