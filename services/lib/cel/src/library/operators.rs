//! Operators.

use std::cmp::Ordering;

use super::super::equality::{compare, contains, equal, keys_of};
use super::super::meter::{Failure, Meter, scan};
use super::super::time;
use super::super::values::{Key, List, Val};
use super::{Cost, Entry, Run};
use crate::node::ListType;

macro_rules! ordered {
    ($name:literal) => {
        &[
            concat!($name, "(bool, bool) bool"),
            concat!($name, "(int, int) bool"),
            concat!($name, "(int, uint) bool"),
            concat!($name, "(int, double) bool"),
            concat!($name, "(uint, uint) bool"),
            concat!($name, "(uint, int) bool"),
            concat!($name, "(uint, double) bool"),
            concat!($name, "(double, double) bool"),
            concat!($name, "(double, int) bool"),
            concat!($name, "(double, uint) bool"),
            concat!($name, "(string, string) bool"),
            concat!($name, "(bytes, bytes) bool"),
            concat!($name, "(timestamp, timestamp) bool"),
            concat!($name, "(duration, duration) bool"),
        ]
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    (&["_==_(A, A) bool"], Cost::Compare, |args, meter| {
        both(args, |a, b| equal(a, b, meter).map(Val::Bool))
    }),
    (&["_!=_(A, A) bool"], Cost::Compare, |args, meter| {
        both(args, |a, b| equal(a, b, meter).map(|same| Val::Bool(!same)))
    }),
    (ordered!("_<_"), Cost::Compare, order(0)),
    (ordered!("_<=_"), Cost::Compare, order(1)),
    (ordered!("_>_"), Cost::Compare, order(2)),
    (ordered!("_>=_"), Cost::Compare, order(3)),
    (
        &[
            "_+_(int, int) int",
            "_+_(uint, uint) uint",
            "_+_(double, double) double",
            "_+_(timestamp, duration) timestamp",
            "_+_(duration, timestamp) timestamp",
            "_+_(duration, duration) duration",
        ],
        Cost::Unit,
        add,
    ),
    (
        &["_+_(string, string) string", "_+_(bytes, bytes) bytes"],
        Cost::Sum,
        concat,
    ),
    (&["_+_(list(A), list(A)) list(A)"], Cost::Unit, join),
    (
        &[
            "_-_(int, int) int",
            "_-_(uint, uint) uint",
            "_-_(double, double) double",
            "_-_(timestamp, duration) timestamp",
            "_-_(timestamp, timestamp) duration",
            "_-_(duration, duration) duration",
        ],
        Cost::Unit,
        subtract,
    ),
    (
        &[
            "_*_(int, int) int",
            "_*_(uint, uint) uint",
            "_*_(double, double) double",
        ],
        Cost::Unit,
        multiply,
    ),
    (
        &[
            "_/_(int, int) int",
            "_/_(uint, uint) uint",
            "_/_(double, double) double",
        ],
        Cost::Unit,
        divide,
    ),
    (
        &["_%_(int, int) int", "_%_(uint, uint) uint"],
        Cost::Unit,
        remainder,
    ),
    (
        &["-_(int) int", "-_(double) double"],
        Cost::Unit,
        |args, _| match args {
            [Val::Int(int)] => int.checked_neg().map(Val::Int).ok_or_else(overflow),
            [Val::Double(double)] => Ok(Val::Double(-double)),
            _ => Err(Failure::NoOverload),
        },
    ),
    (&["!_(bool) bool"], Cost::Unit, |args, _| match args {
        [Val::Bool(flag)] => Ok(Val::Bool(!flag)),
        _ => Err(Failure::NoOverload),
    }),
    (
        &["@in(A, list(A)) bool"],
        Cost::Member,
        |args, meter| match args {
            [value, Val::List(list)] => contains(list, value, meter).map(Val::Bool),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["@in(A, map(A, B)) bool"],
        Cost::Unit,
        |args, _| match args {
            [key, Val::Map(map)] => Ok(Val::Bool(map.get(key)?.is_some())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["_[_](list(A), int) A", "_[_](map(A, B), A) B"],
        Cost::Unit,
        |args, _| both(args, index),
    ),
    (
        &[
            "_[?_](list(A), int) optional(A)",
            "_[?_](map(A, B), A) optional(B)",
            "_[?_](optional(list(A)), int) optional(A)",
            "_[?_](optional(map(A, B)), A) optional(B)",
            "_[_](optional(list(A)), int) optional(A)",
            "_[_](optional(map(A, B)), A) optional(B)",
        ],
        Cost::Unit,
        |args, _| both(args, optional_index),
    ),
];

fn both<'r, 'a, T>(
    args: &'r [Val<'a>],
    then: impl FnOnce(&'r Val<'a>, &'r Val<'a>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match args {
        [a, b] => then(a, b),
        _ => Err(Failure::NoOverload),
    }
}

/// Returns what one of the operators that compare does.
const fn order(operator: usize) -> Run {
    match operator {
        0 => |args, meter| ordering(args, meter, Ordering::is_lt),
        1 => |args, meter| ordering(args, meter, Ordering::is_le),
        2 => |args, meter| ordering(args, meter, Ordering::is_gt),
        _ => |args, meter| ordering(args, meter, Ordering::is_ge),
    }
}

fn ordering<'a>(
    args: &[Val<'a>],
    meter: &mut Meter,
    holds: fn(Ordering) -> bool,
) -> Result<Val<'a>, Failure> {
    both(args, |a, b| {
        compare(a, b, meter).map(|found| Val::Bool(holds(found)))
    })
}

pub(super) fn overflow() -> Failure {
    Failure::error("integer overflow")
}

fn unsigned_overflow() -> Failure {
    Failure::error("unsigned integer overflow")
}

fn by_zero() -> Failure {
    Failure::error("division by zero")
}

fn duration_overflow() -> Failure {
    Failure::error("duration overflow")
}

fn shifted<'a>(at: jiff::Timestamp, nanos: i64) -> Result<Val<'a>, Failure> {
    let moved = at.checked_add(jiff::SignedDuration::from_nanos(nanos)).ok();
    let moved = moved.and_then(time::in_range);
    let overflow = || Failure::error("timestamp overflow");
    moved.map(Val::Timestamp).ok_or_else(overflow)
}

pub(super) fn add<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Int(a), Val::Int(b)] => a.checked_add(*b).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(a), Val::Uint(b)] => a
            .checked_add(*b)
            .map(Val::Uint)
            .ok_or_else(unsigned_overflow),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a + b)),
        [Val::Timestamp(at), Val::Duration(by)] | [Val::Duration(by), Val::Timestamp(at)] => {
            shifted(*at, *by)
        }
        [Val::Duration(a), Val::Duration(b)] => a
            .checked_add(*b)
            .map(Val::Duration)
            .ok_or_else(duration_overflow),
        _ => Err(Failure::NoOverload),
    }
}

fn subtract<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Int(a), Val::Int(b)] => a.checked_sub(*b).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(a), Val::Uint(b)] => a
            .checked_sub(*b)
            .map(Val::Uint)
            .ok_or_else(unsigned_overflow),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a - b)),
        [Val::Timestamp(at), Val::Duration(by)] => {
            shifted(*at, by.checked_neg().ok_or_else(duration_overflow)?)
        }
        [Val::Timestamp(a), Val::Timestamp(b)] => {
            let nanos = i64::try_from(a.duration_since(*b).as_nanos());
            nanos.map(Val::Duration).map_err(|_| duration_overflow())
        }
        [Val::Duration(a), Val::Duration(b)] => a
            .checked_sub(*b)
            .map(Val::Duration)
            .ok_or_else(duration_overflow),
        _ => Err(Failure::NoOverload),
    }
}

fn multiply<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Int(a), Val::Int(b)] => a.checked_mul(*b).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(a), Val::Uint(b)] => a
            .checked_mul(*b)
            .map(Val::Uint)
            .ok_or_else(unsigned_overflow),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a * b)),
        _ => Err(Failure::NoOverload),
    }
}

fn divide<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Int(_), Val::Int(0)] | [Val::Uint(_), Val::Uint(0)] => Err(by_zero()),
        [Val::Int(a), Val::Int(b)] => a.checked_div(*b).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(a), Val::Uint(b)] => a.checked_div(*b).map(Val::Uint).ok_or_else(by_zero),
        [Val::Double(a), Val::Double(b)] => Ok(Val::Double(a / b)),
        _ => Err(Failure::NoOverload),
    }
}

fn remainder<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    let by_zero = || Failure::error("modulus by zero");
    match args {
        [Val::Int(_), Val::Int(0)] => Err(by_zero()),
        [Val::Int(a), Val::Int(b)] => a.checked_rem(*b).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(a), Val::Uint(b)] => a.checked_rem(*b).map(Val::Uint).ok_or_else(by_zero),
        _ => Err(Failure::NoOverload),
    }
}

fn concat<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    match args {
        [Val::String(a), Val::String(b)] => Ok(Val::from(format!("{}{}", &**a, &**b))),
        [Val::Bytes(a), Val::Bytes(b)] => Ok(Val::Bytes([&**a, &**b].concat().into())),
        _ => Err(Failure::NoOverload),
    }
}

/// Joins two lists. Items of sets, and of lists of type map, are added or replaced.
fn join<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let [Val::List(a), Val::List(b)] = args else {
        return Err(Failure::NoOverload);
    };
    meter.spend((a.len() + b.len()) as u64)?;
    let mut items = a.iter().collect::<Result<Vec<_>, _>>()?;
    match a.list_type() {
        ListType::Atomic => items.extend(b.iter().collect::<Result<Vec<_>, _>>()?),
        ListType::Set => union(&mut items, b, meter)?,
        ListType::Map => merge(&mut items, a, b, meter)?,
    }
    Ok(Val::from(items))
}

fn union<'a>(items: &mut Vec<Val<'a>>, added: &List<'a>, meter: &mut Meter) -> Result<(), Failure> {
    let mut known = std::collections::BTreeSet::new();
    for item in items.iter() {
        meter.spend(scan(item.size()))?;
        known.insert(Key::of(item));
    }
    for item in added.iter() {
        let item = item?;
        meter.spend(scan(item.size()))?;
        let key = Key::of(&item);
        let is_new = match &key {
            Some(_) => known.insert(key),
            None => !contains(&List::Made(items.clone().into()), &item, meter)?,
        };
        if is_new {
            items.push(item);
        }
    }
    Ok(())
}

fn merge<'a>(
    items: &mut Vec<Val<'a>>,
    list: &List<'a>,
    added: &List<'a>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let keys = list.keys();
    let mut places = std::collections::BTreeMap::new();
    for (place, item) in items.iter().enumerate() {
        places.insert(keys_of(item, keys, meter)?, place);
    }
    for item in added.iter() {
        let item = item?;
        let key = keys_of(&item, keys, meter)?;
        match places.get(&key).and_then(|place| items.get_mut(*place)) {
            Some(place) => *place = item,
            None => {
                places.insert(key, items.len());
                items.push(item);
            }
        }
    }
    Ok(())
}

/// Returns the item or the value of an index.
fn index<'a>(container: &Val<'a>, key: &Val<'a>) -> Result<Val<'a>, Failure> {
    match (container, key) {
        (Val::List(list), key) => {
            let found = position(key)?.and_then(|index| list.get(index));
            let size = list.len();
            let missing = || {
                let key = super::convert::shown(key);
                Failure::Error(format!("index out of bounds: {key} (size {size})"))
            };
            found.ok_or_else(missing)?
        }
        (Val::Map(map), key) => {
            let missing = || Failure::Error(format!("no such key: {}", super::convert::shown(key)));
            map.get(key)?.ok_or_else(missing)
        }
        _ => Err(Failure::NoOverload),
    }
}

fn optional_index<'a>(container: &Val<'a>, key: &Val<'a>) -> Result<Val<'a>, Failure> {
    let found = match container {
        Val::Optional(None) => None,
        Val::Optional(Some(inner)) => return optional_index(inner, key),
        Val::List(list) => position(key)?
            .and_then(|index| list.get(index))
            .transpose()?,
        Val::Map(map) => map.get(key)?,
        _ => return Err(Failure::NoOverload),
    };
    Ok(found.map_or(Val::Optional(None), Val::some))
}

/// Returns the index that a number is; none if it is negative.
fn position(key: &Val<'_>) -> Result<Option<usize>, Failure> {
    match key {
        Val::Int(int) => Ok(usize::try_from(*int).ok()),
        Val::Uint(int) => Ok(usize::try_from(*int).ok()),
        Val::Double(double) if double.fract() == 0.0 && *double >= 0.0 => {
            Ok(Some(*double as usize))
        }
        _ => Err(Failure::NoOverload),
    }
}
