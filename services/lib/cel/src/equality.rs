//! Equality and order of values.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::meter::{Failure, Meter, scan};
use super::names;
use super::values::{Key, List, Map, Val};
use crate::node::ListType;

/// Whether two values are equal. Values of different types are not, but numbers are compared as numbers.
pub(super) fn equal(a: &Val<'_>, b: &Val<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    meter.spend(match (a, b) {
        (Val::String(_), Val::String(_)) | (Val::Bytes(_), Val::Bytes(_)) => smaller(a, b),
        _ => 1,
    })?;
    Ok(match (a, b) {
        (Val::String(a), Val::String(b)) => **a == **b,
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::List(a), Val::List(b)) => return lists(a, b, meter),
        (Val::Map(a), Val::Map(b)) => return maps(a, b, meter),
        (Val::Struct(a), Val::Struct(b)) => return a.equals(b, meter),
        (Val::Optional(Some(a)), Val::Optional(Some(b))) => return equal(a, b, meter),
        (Val::Unknown(a), Val::Unknown(b)) => return same_json(a, b, meter),
        (Val::Url(a), Val::Url(b)) => a == b,
        (Val::Quantity(a), Val::Quantity(b)) => a == b,
        (Val::Semver(a), Val::Semver(b)) => a == b,
        _ => scalars(a, b),
    })
}

fn scalars(a: &Val<'_>, b: &Val<'_>) -> bool {
    match (a, b) {
        (Val::Null, Val::Null) | (Val::Optional(None), Val::Optional(None)) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::Type(a), Val::Type(b)) | (Val::Format(a), Val::Format(b)) => a == b,
        (Val::Ip(a), Val::Ip(b)) => a == b,
        (Val::Cidr(a), Val::Cidr(b)) => a == b,
        _ => numbers(a, b) == Some(Ordering::Equal),
    }
}

/// Compares JSON without a schema: the cost is that of the smaller value.
fn same_json(a: &Value, b: &Value, meter: &mut Meter) -> Result<bool, Failure> {
    meter.spend(1)?;
    Ok(match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !same_json(a, b, meter)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(a), Value::Object(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (name, a) in a {
                let same = match b.get(name) {
                    Some(b) => same_json(a, b, meter)?,
                    None => false,
                };
                if !same {
                    return Ok(false);
                }
            }
            true
        }
        (Value::String(a), Value::String(b)) => {
            meter.spend(scan(a.len().min(b.len()) as u64))?;
            a == b
        }
        (a, b) => a == b,
    })
}

/// The order of items does not count if the schema of the first list says so.
fn lists(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    match a.list_type() {
        ListType::Atomic => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(&a?, &b?, meter)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        ListType::Set => same_set(a, b, meter),
        ListType::Map => {
            let (keys, found) = (a.keys(), index(a, meter)?);
            for item in b.iter() {
                let item = item?;
                let same = match found.get(&keys_of(&item, keys, meter)?) {
                    Some(found) => equal(found, &item, meter)?,
                    None => false,
                };
                if !same {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Items of sets are scalars mostly; others are searched for.
fn same_set(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    let keys = |list: &List<'_>, meter: &mut Meter| -> Result<Option<BTreeSet<Key>>, Failure> {
        let mut keys = BTreeSet::new();
        for item in list.iter() {
            let item = item?;
            meter.spend(1 + scan(item.size()))?;
            match Key::of(&item) {
                Some(key) => keys.insert(key),
                None => return Ok(None),
            };
        }
        Ok(Some(keys))
    };
    if let (Some(a), Some(b)) = (keys(a, meter)?, keys(b, meter)?) {
        return Ok(a == b);
    }
    for item in b.iter() {
        if !contains(a, &item?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The values of the keys of an item of a list of type map.
pub(super) type Keys = Vec<Option<Key>>;

/// Returns the values of the keys of an item.
pub(super) fn keys_of(item: &Val<'_>, keys: &[String], meter: &mut Meter) -> Result<Keys, Failure> {
    let Val::Map(fields) = item else {
        return Err(Failure::NoOverload);
    };
    let mut found = Vec::with_capacity(keys.len());
    for key in keys {
        let name = names::escape(key).unwrap_or_else(|| key.as_str().into());
        let value = fields.get(&Val::from(&*name))?;
        meter.spend(1 + value.as_ref().map_or(0, |value| scan(value.size())))?;
        found.push(value.as_ref().and_then(Key::of));
    }
    Ok(found)
}

/// Returns the items of a list of type map by the values of their keys.
fn index<'a>(list: &List<'a>, meter: &mut Meter) -> Result<BTreeMap<Keys, Val<'a>>, Failure> {
    let items = list.iter().map(|item| {
        let item = item?;
        Ok((keys_of(&item, list.keys(), meter)?, item))
    });
    items.collect()
}

/// Whether a list has an item that is equal to a value.
pub(super) fn contains(
    list: &List<'_>,
    value: &Val<'_>,
    meter: &mut Meter,
) -> Result<bool, Failure> {
    for item in list.iter() {
        if equal(&item?, value, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn maps(a: &Map<'_>, b: &Map<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if let (Map::Read { fields: a, schema }, Map::Read { fields: b, .. }) = (a, b)
        && schema.node.properties.is_empty()
        && schema.node.values().is_none()
    {
        // Nothing is known of the values.
        let mut same = a.len() == b.len();
        for (name, value) in a.iter() {
            same = same
                && match b.get(name) {
                    Some(other) => same_json(value, other, meter)?,
                    None => false,
                };
        }
        return Ok(same);
    }
    if a.len() != b.len() {
        return Ok(false);
    }
    for key in a.keys() {
        meter.spend(1)?;
        let same = match (a.get(&key)?, b.get(&key)?) {
            (Some(a), Some(b)) => equal(&a, &b, meter)?,
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares two numbers, of whatever types. None if one is not a number.
pub(super) fn numbers(a: &Val<'_>, b: &Val<'_>) -> Option<Ordering> {
    let whole = |value: &Val<'_>| match value {
        Val::Int(int) => Some(i128::from(*int)),
        Val::Uint(int) => Some(i128::from(*int)),
        _ => None,
    };
    let double = |value: &Val<'_>| match value {
        Val::Double(double) => Some(*double),
        _ => None,
    };
    match (whole(a), whole(b), double(a), double(b)) {
        (Some(a), Some(b), _, _) => Some(a.cmp(&b)),
        (_, _, Some(a), Some(b)) => a.partial_cmp(&b),
        (Some(a), _, _, Some(b)) => against(a, b),
        (_, Some(b), Some(a), _) => against(b, a).map(Ordering::reverse),
        _ => None,
    }
}

/// Compares a whole number with a double, exactly.
fn against(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // A cast saturates, and keeps every whole number of this range.
    let truncated = double as i128;
    Some(match whole.cmp(&truncated) {
        Ordering::Equal => 0.0_f64.partial_cmp(&double.fract())?,
        other => other,
    })
}

/// Returns the cost of comparing two values without parts. A comparison is never free, or those of a list of empty
/// strings were.
fn smaller(a: &Val<'_>, b: &Val<'_>) -> u64 {
    scan(a.size().min(b.size())).max(1)
}

/// Compares two values of a type that has an order.
pub(super) fn compare(a: &Val<'_>, b: &Val<'_>, meter: &mut Meter) -> Result<Ordering, Failure> {
    meter.spend(smaller(a, b))?;
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
        (Val::String(a), Val::String(b)) => Ok((**a).cmp(&**b)),
        (Val::Bytes(a), Val::Bytes(b)) => Ok(a.cmp(b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
        (Val::Double(a), _) if a.is_nan() => Err(unordered()),
        (_, Val::Double(b)) if b.is_nan() => Err(unordered()),
        _ => numbers(a, b).ok_or(Failure::NoOverload),
    }
}

fn unordered() -> Failure {
    Failure::error("NaN values cannot be ordered")
}
