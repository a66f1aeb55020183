//! The largest sizes that values may have, by their schemas.

use std::rc::Rc;

use crate::node::Node;

/// The largest request that is assumed, in bytes.
pub(super) const MAX_REQUEST: u64 = 3 << 20;
/// The length of a time or a duration in JSON.
const MAX_TIME: u64 = 32;
const MAX_DATE: u64 = 12;

/// The largest size of a value: bytes of a string, items of a list; and those of its items.
#[derive(Clone, Debug)]
pub(super) enum Size<'n> {
    /// The value has a schema.
    Node(&'n Node),
    /// The value is computed.
    Of(u64, Option<Rc<Size<'n>>>),
}

impl<'n> Size<'n> {
    /// The size of a value without parts.
    pub(super) const ONE: Size<'static> = Size::Of(1, None);
    pub(super) const UNKNOWN: Size<'static> = Size::Of(MAX_REQUEST, None);

    pub(super) fn list(count: u64, item: Size<'n>) -> Self {
        Size::Of(count, Some(Rc::new(item)))
    }

    pub(super) fn max(&self) -> u64 {
        match self {
            Size::Of(max, _) => *max,
            Size::Node(node) => of(node),
        }
    }

    /// Returns the size of the items of a list, or of the values of a map.
    pub(super) fn item(&self) -> Size<'n> {
        match self {
            Size::Of(_, Some(item)) => (**item).clone(),
            Size::Of(..) => Size::UNKNOWN,
            Size::Node(node) => {
                let items = node.items.as_deref().or_else(|| node.values());
                items.map_or(Size::UNKNOWN, Size::Node)
            }
        }
    }

    /// Returns the larger of two sizes.
    pub(super) fn larger(self, other: Self) -> Self {
        match self.max() >= other.max() {
            true => self,
            false => other,
        }
    }
}

fn of(node: &Node) -> u64 {
    let bounds = &node.bounds;
    let declared = |max: Option<i64>| max.map(|max| u64::try_from(max).unwrap_or(0));
    let text = |max: Option<i64>| declared(max).map(|max| max.saturating_mul(4));
    if node.int_or_string {
        return text(bounds.max_length).unwrap_or(MAX_REQUEST - 2);
    }
    match node.schema_type.as_str() {
        "array" => declared(bounds.max_items).unwrap_or_else(|| {
            let items = node.items.as_deref().map_or(0, smallest);
            (MAX_REQUEST - 2) / (items + 1)
        }),
        "object" => match node.values() {
            Some(values) => declared(bounds.max_properties)
                .unwrap_or_else(|| (MAX_REQUEST - 2) / (smallest(values) + 6)),
            None => 0,
        },
        "string" => match node.format.as_str() {
            "byte" => declared(bounds.max_length).unwrap_or(MAX_REQUEST - 2),
            "duration" | "date-time" => MAX_TIME,
            "date" => MAX_DATE,
            _ => text(bounds.max_length).unwrap_or_else(|| longest(node)),
        },
        // As upstream, values without a length are taken for nothing.
        _ => 0,
    }
}

/// The longest value of an `enum`, if there is one.
fn longest(node: &Node) -> u64 {
    let values = node.enumeration.values();
    let lengths = values
        .iter()
        .filter_map(|value| value.as_str())
        .map(str::len);
    match values.is_empty() {
        true => MAX_REQUEST - 2,
        false => lengths.max().unwrap_or(0) as u64,
    }
}

/// Returns the largest number of values of a schema that one request can have.
pub fn max_cardinality(node: &Node) -> u64 {
    MAX_REQUEST / (smallest(node) + 1)
}

/// Returns the size of the smallest value in JSON, in bytes.
fn smallest(node: &Node) -> u64 {
    if node.int_or_string {
        return 1;
    }
    match node.schema_type.as_str() {
        "object" if node.values().is_none() => {
            let required = node.required.iter().filter_map(|name| {
                let field = node.properties.get(name)?;
                let size = || name.len() as u64 + smallest(field) + 4;
                field.default.is_none().then(size)
            });
            2 + required.sum::<u64>()
        }
        "string" => match node.format.as_str() {
            "duration" => 3,
            "date" => MAX_DATE,
            "date-time" => 21,
            _ => 2,
        },
        "boolean" => 4,
        "number" | "integer" => 1,
        _ => 2,
    }
}
