//! The fields in which two documents differ.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{PathElement, equal};
use super::set::{FieldSet, Node};
use super::shape::{Form, Shape};

/// The fields in which a document differs from a former one.
#[derive(Default)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    /// Compares two documents.
    ///
    /// # Errors
    /// If an entry of a list has no key.
    pub(super) fn of(shape: Shape<'_>, old: &Value, new: &Value) -> Result<Self, String> {
        let mut difference = Difference::default();
        compare(shape, Some(old), Some(new), &mut difference)?;
        Ok(difference.into())
    }

    /// Returns the comparison without the fields that a write resets.
    pub(super) fn without(mut self, reset: &FieldSet) -> Self {
        for set in [&mut self.added, &mut self.modified, &mut self.removed] {
            set.remove_recursively(reset);
        }
        self
    }
}

impl From<Difference> for Comparison {
    fn from(difference: Difference) -> Self {
        let [added, modified, removed] = difference.below.map(FieldSet::of_nodes);
        Self {
            added,
            modified,
            removed,
        }
    }
}

/// The kinds of differences, as indices.
pub(super) const ADDED: usize = 0;
pub(super) const MODIFIED: usize = 1;
pub(super) const REMOVED: usize = 2;

/// The differences of one value.
#[derive(Default)]
pub(super) struct Difference {
    /// Whether the value itself was added, modified or removed.
    pub(super) own: [bool; 3],
    /// The differences in it.
    below: [Vec<Node>; 3],
}

impl Difference {
    /// Adds the differences of a value below this one.
    pub(super) fn push(&mut self, element: PathElement, inner: Self) {
        let parts = inner.own.into_iter().zip(inner.below);
        for (nodes, (is_member, below)) in self.below.iter_mut().zip(parts) {
            if is_member || !below.is_empty() {
                nodes.push(Node {
                    element: element.clone(),
                    is_member,
                    below: FieldSet::of_nodes(below),
                });
            }
        }
    }
}

fn compare(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Difference,
) -> Result<(), String> {
    match shape.form(new.or(old).unwrap_or(&Value::Null)) {
        Form::Object => {
            let none = Map::new();
            let before = old.and_then(Value::as_object).unwrap_or(&none);
            let after = new.and_then(Value::as_object).unwrap_or(&none);
            if !(before.is_empty() && after.is_empty()) {
                mark_existence(old, new, out);
                return objects(shape, before, after, out);
            }
        }
        Form::List => {
            let (before, after) = (entries_of(old), entries_of(new));
            if !(before.is_empty() && after.is_empty()) {
                mark_existence(old, new, out);
                return lists(shape, before, after, out);
            }
        }
        Form::Leaf => {}
    }
    mark_existence(old, new, out);
    if let (Some(old), Some(new)) = (old, new) {
        out.own[MODIFIED] = !equal(old, new);
    }
    Ok(())
}

fn entries_of(list: Option<&Value>) -> &[Value] {
    let list = list.and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

const fn mark_existence(old: Option<&Value>, new: Option<&Value>, out: &mut Difference) {
    out.own[ADDED] = old.is_none();
    out.own[REMOVED] = new.is_none();
}

fn objects(
    shape: Shape<'_>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    out: &mut Difference,
) -> Result<(), String> {
    let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| -> Result<(), String> {
        if old == new {
            return Ok(());
        }
        let (element, inner) = shape.named(name);
        let mut difference = Difference::default();
        compare(inner, old, new, &mut difference)?;
        out.push(element, difference);
        Ok(())
    };
    for (name, before) in old {
        visit(name, Some(before), new.get(name))?;
    }
    for (name, after) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        visit(name, None, Some(after))?;
    }
    Ok(())
}

/// The entries of a list with the same key; there may be duplicates.
type Entries<'v> = BTreeMap<PathElement, (Vec<&'v Value>, Vec<&'v Value>)>;

fn lists(
    shape: Shape<'_>,
    old: &[Value],
    new: &[Value],
    out: &mut Difference,
) -> Result<(), String> {
    let mut entries = Entries::new();
    for entry in old {
        entries
            .entry(shape.entry(entry)?)
            .or_default()
            .0
            .push(entry);
    }
    for entry in new {
        entries
            .entry(shape.entry(entry)?)
            .or_default()
            .1
            .push(entry);
    }
    for (element, (before, after)) in entries {
        let difference = entry(shape.entries(), &before, &after)?;
        out.push(element, difference);
    }
    Ok(())
}

/// Compares the entries with one key. Duplicates are owned as a whole.
fn entry(shape: Shape<'_>, before: &[&Value], after: &[&Value]) -> Result<Difference, String> {
    let mut difference = Difference::default();
    match (before, after) {
        ([] | [_], [] | [_]) => {
            let (before, after) = (before.first().copied(), after.first().copied());
            if before != after {
                compare(shape, before, after, &mut difference)?;
            }
        }
        ([_, _, ..], [_, _, ..]) => difference.own[MODIFIED] = before != after,
        ([_, _, ..], _) => {
            if let Some(after) = after.first() {
                compare(shape, None, Some(after), &mut difference)?;
            }
            difference.own[REMOVED] = true;
        }
        (_, [_, _, ..]) => {
            if let Some(before) = before.first() {
                compare(shape, Some(before), None, &mut difference)?;
            }
            difference.own[ADDED] = true;
        }
    }
    Ok(difference)
}
