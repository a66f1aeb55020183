//! Lists as sets.

use super::super::equality::contains;
use super::super::meter::{Failure, Meter};
use super::super::values::{List, Val};
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["sets.contains(list(A), list(A)) bool"],
        Cost::Pairs(1),
        |args, meter| sets(args, |a, b| includes(a, b, meter)),
    ),
    (
        &["sets.equivalent(list(A), list(A)) bool"],
        Cost::Pairs(2),
        |args, meter| {
            sets(args, |a, b| {
                Ok(includes(a, b, meter)? && includes(b, a, meter)?)
            })
        },
    ),
    (
        &["sets.intersects(list(A), list(A)) bool"],
        Cost::Pairs(1),
        |args, meter| {
            sets(args, |a, b| {
                for item in b.iter() {
                    if contains(a, &item?, meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            })
        },
    ),
];

fn sets<'a>(
    args: &[Val<'a>],
    then: impl FnOnce(&List<'a>, &List<'a>) -> Result<bool, Failure>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::List(a), Val::List(b)] => then(a, b).map(Val::Bool),
        _ => Err(Failure::NoOverload),
    }
}

/// Whether every item of `part` is one of `whole`.
fn includes(whole: &List<'_>, part: &List<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    for item in part.iter() {
        if !contains(whole, &item?, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}
