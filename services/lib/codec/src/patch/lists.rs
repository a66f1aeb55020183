//! Lists in a strategic merge patch. Entries are identified by their merge key or, for scalars, by their value.

use std::collections::HashSet;

use serde_json::Value;

use super::Error;
use super::budget::Budget;
use super::identity::{Entry, Identity, Numbers, entries, positions, replaces};
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
    let mut numbers = Numbers::new(identity);
    let old = numbers.of(&original);
    let known = numbers.len();
    let new = numbers.of(&patch);
    let count = numbers.len();
    let (original, patch) = (entries(original, old), entries(patch, new));
    let (merged, order) = apply(original, patch, count, field, budget)?;
    Ok(arrange(merged, &positions(order, count), known))
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
    budget.spend(identity.compared_bytes(&original))?;
    let mut numbers = Numbers::new(identity);
    let old = numbers.of(&original);
    let known = numbers.len();
    let (new, order) = (numbers.of(&patch), numbers.of(&order));
    let count = numbers.len();
    let (original, patch) = (entries(original, old), entries(patch, new));
    let order = positions(order, count);
    check_order(&patch, &order)?;
    let merged = match (patch.is_empty(), field.merges()) {
        (true, _) => original,
        (false, true) => apply(original, patch, count, field, budget)?.0,
        (false, false) => patch,
    };
    Ok(arrange(merged, &order, known))
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
        let deleted: HashSet<&Value> = values.iter().collect();
        list.retain(|item| !deleted.contains(item));
    }
    Ok(())
}

/// Returns the list with the entries of the patch merged or appended, and the order of those that are no directives.
fn apply(
    mut original: Vec<Entry>,
    patch: Vec<Entry>,
    count: usize,
    field: &'static Field,
    budget: &mut Budget,
) -> Result<(Vec<Entry>, Vec<usize>), Error> {
    let (directives, changes): (Vec<_>, Vec<_>) = patch
        .into_iter()
        .partition(|entry| entry.value.get(PATCH).is_some());
    let order = changes.iter().map(|change| change.number).collect();
    if apply_directives(&directives, &mut original)? {
        return Ok((changes, order));
    }
    let mut at = positions(original.iter().map(|entry| entry.number), count);
    for Entry { number, value } in changes {
        let at = *at[number].get_or_insert(original.len());
        match (original.get_mut(at), value) {
            (Some(old), Value::Object(change)) => {
                let (old, schema) = (&mut old.value, Schema::element(field));
                let merged = merge_object(as_object(old.take()), change, schema, budget)?;
                *old = Value::Object(merged);
            }
            (Some(_), _) => {}
            (None, new) => original.push(Entry {
                number,
                value: without_directives(new),
            }),
        }
    }
    Ok((original, order))
}

/// Executes `delete` directives. Returns whether the patch replaces the whole list.
fn apply_directives(directives: &[Entry], original: &mut Vec<Entry>) -> Result<bool, Error> {
    let mut deleted = HashSet::new();
    for Entry { number, value } in directives {
        match value[PATCH].as_str() {
            Some("delete") => drop(deleted.insert(*number)),
            Some("replace") => {}
            Some("merge") => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(Error::Malformed(message.to_owned()));
            }
            _ => return Err(bad_directive(&value[PATCH], &as_object(value.clone()))),
        }
    }
    original.retain(|entry| !deleted.contains(&entry.number));
    Ok(directives.iter().any(|entry| replaces(&entry.value)))
}

fn as_object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

/// Checks that the entries of the patch are in the order of its own directive.
fn check_order(patch: &[Entry], order: &[Option<usize>]) -> Result<(), Error> {
    let named = patch
        .iter()
        .filter(|entry| entry.value.get(PATCH).is_none());
    let positions: Vec<_> = named.map(|entry| order[entry.number]).collect();
    match positions.iter().all(Option::is_some) && positions.is_sorted() {
        true => Ok(()),
        false => Err(Error::Malformed(
            "the order in the patch list doesn't match the $setElementOrder list".to_owned(),
        )),
    }
}

/// Sorts entries by `order`. Entries that are not in it stay before those that they preceded originally, among the
/// `known` first numbers.
fn arrange(merged: Vec<Entry>, order: &[Option<usize>], known: usize) -> Vec<Value> {
    let (mut named, mut others): (Vec<_>, Vec<_>) = merged
        .into_iter()
        .partition(|entry| order[entry.number].is_some());
    named.sort_by_key(|entry| order[entry.number]);
    others.sort_by_key(|entry| entry.before(known));
    interleave(named, others, known)
}

fn interleave(named: Vec<Entry>, others: Vec<Entry>, known: usize) -> Vec<Value> {
    let goes_first = |other: &Entry, named: &Entry| {
        let positions = other.before(known).zip(named.before(known));
        positions.is_some_and(|(other, named)| other < named)
    };
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
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
        arranged.extend(next.map(|entry| entry.value));
    }
}
