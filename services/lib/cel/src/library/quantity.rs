//! Quantities of resources: `100m`, `1Gi`.

use setpoint_model::quantity::Amount;

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["quantity(string) quantity"],
        Cost::First,
        |args, _| match args {
            [Val::String(text)] => Amount::parse(text)
                .map(Val::Quantity)
                .map_err(|error| Failure::Error(error.to_string())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["isQuantity(string) bool"],
        Cost::First,
        |args, _| match args {
            [Val::String(text)] => Ok(Val::Bool(Amount::parse(text).is_ok())),
            _ => Err(Failure::NoOverload),
        },
    ),
    (
        &["sign(quantity) int", "quantity::sign() int"],
        Cost::Unit,
        |args, _| one(args, |amount| Val::Int(amount.cmp(&Amount::ZERO) as i64)),
    ),
    (&["quantity::isInteger() bool"], Cost::Unit, |args, _| {
        one(args, |amount| Val::Bool(whole(amount).is_some()))
    }),
    (&["quantity::asInteger() int"], Cost::Unit, |args, _| {
        let [Val::Quantity(amount)] = args else {
            return Err(Failure::NoOverload);
        };
        let inexact = || Failure::error("cannot convert value to integer");
        whole(*amount).map(Val::Int).ok_or_else(inexact)
    }),
    (
        &["quantity::asApproximateFloat() double"],
        Cost::Unit,
        |args, _| one(args, |amount| Val::Double(amount.as_f64())),
    ),
    (
        &["quantity::isGreaterThan(quantity) bool"],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Bool(a > b)),
    ),
    (
        &["quantity::isLessThan(quantity) bool"],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Bool(a < b)),
    ),
    (
        &["quantity::compareTo(quantity) int"],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Int(a.cmp(&b) as i64)),
    ),
    (
        &[
            "quantity::add(quantity) quantity",
            "quantity::add(int) quantity",
        ],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Quantity(a + b)),
    ),
    (
        &[
            "quantity::sub(quantity) quantity",
            "quantity::sub(int) quantity",
        ],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Quantity(a - b)),
    ),
];

fn whole(amount: Amount) -> Option<i64> {
    let value = amount.value();
    (Amount::from_value(value) == amount).then_some(value)
}

fn one<'a>(args: &[Val<'a>], then: impl FnOnce(Amount) -> Val<'a>) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Quantity(amount)] => Ok(then(*amount)),
        _ => Err(Failure::NoOverload),
    }
}

fn two<'a>(
    args: &[Val<'a>],
    then: impl FnOnce(Amount, Amount) -> Val<'a>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Quantity(a), Val::Quantity(b)] => Ok(then(*a, *b)),
        [Val::Quantity(a), Val::Int(b)] => Ok(then(*a, Amount::from_value(*b))),
        _ => Err(Failure::NoOverload),
    }
}
