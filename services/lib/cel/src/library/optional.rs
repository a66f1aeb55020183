//! Values that may be missing.

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[
    (&["optional.none() optional(A)"], Cost::Unit, |_, _| {
        Ok(Val::Optional(None))
    }),
    (
        &["optional.of(A) optional(A)"],
        Cost::Unit,
        |args, _| match args {
            [value] => Ok(Val::some(value.clone())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["optional.ofNonZeroValue(A) optional(A)"],
        Cost::Unit,
        |args, _| match args {
            [value] if is_zero(value) => Ok(Val::Optional(None)),
            [value] => Ok(Val::some(value.clone())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["optional(A)::hasValue() bool"],
        Cost::Unit,
        |args, _| match args {
            [Val::Optional(inner)] => Ok(Val::Bool(inner.is_some())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["optional(A)::value() A"],
        Cost::Unit,
        |args, _| match args {
            [Val::Optional(Some(inner))] => Ok((**inner).clone()),
            [Val::Optional(None)] => Err(Failure::error("optional.none() dereference")),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["optional(A)::or(optional(A)) optional(A)"],
        Cost::Unit,
        |args, _| match args {
            [Val::Optional(None), other] => Ok(other.clone()),
            [found, _] => Ok(found.clone()),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["optional(A)::orValue(A) A"],
        Cost::Unit,
        |args, _| match args {
            [Val::Optional(Some(inner)), _] => Ok((**inner).clone()),
            [Val::Optional(None), other] => Ok(other.clone()),
            _ => Err(Failure::NoOverload),
        },
    ),
];

fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null | Val::Bool(false) | Val::Int(0) | Val::Uint(0) | Val::Duration(0) => true,
        Val::Double(double) => *double == 0.0,
        Val::String(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.len() == 0,
        Val::Map(map) => map.len() == 0,
        Val::Struct(object) => object.is_empty(),
        Val::Optional(inner) => inner.is_none(),
        _ => false,
    }
}
