//! Functions of lists.

use std::cmp::Ordering;

use super::super::equality::{compare, contains, equal};
use super::super::meter::{Failure, Meter};
use super::super::values::{List, Val};
use super::operators;
use super::{Cost, Entry};

/// The numbers of `lists.range`.
const MAX_RANGE: i64 = 100_000;
const MAX_DEPTH: i64 = 32;

macro_rules! of_ordered {
    ($($rest:literal),*) => {
        &[$(
            concat!("list(int)::", $rest, " int"),
            concat!("list(uint)::", $rest, " uint"),
            concat!("list(double)::", $rest, " double"),
            concat!("list(bool)::", $rest, " bool"),
            concat!("list(duration)::", $rest, " duration"),
            concat!("list(timestamp)::", $rest, " timestamp"),
            concat!("list(string)::", $rest, " string"),
            concat!("list(bytes)::", $rest, " bytes"),
        )*]
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    (
        &[
            "list(int)::isSorted() bool",
            "list(uint)::isSorted() bool",
            "list(double)::isSorted() bool",
            "list(bool)::isSorted() bool",
            "list(duration)::isSorted() bool",
            "list(timestamp)::isSorted() bool",
            "list(string)::isSorted() bool",
            "list(bytes)::isSorted() bool",
        ],
        Cost::Items,
        |args, meter| {
            let mut items = iterate(args)?;
            let Some(mut last) = items.next().transpose()? else {
                return Ok(Val::Bool(true));
            };
            for item in items {
                let item = item?;
                if compare(&last, &item, meter)?.is_gt() {
                    return Ok(Val::Bool(false));
                }
                last = item;
            }
            Ok(Val::Bool(true))
        },
    ),
    (of_ordered!("min()"), Cost::Items, |args, meter| {
        extreme(args, meter, "min", Ordering::is_lt)
    }),
    (of_ordered!("max()"), Cost::Items, |args, meter| {
        extreme(args, meter, "max", Ordering::is_gt)
    }),
    (
        &[
            "list(int)::sum() int",
            "list(uint)::sum() uint",
            "list(double)::sum() double",
            "list(duration)::sum() duration",
        ],
        Cost::Items,
        sum,
    ),
    (&["list(A)::indexOf(A) int"], Cost::Items, |args, meter| {
        position(args, meter, false)
    }),
    (
        &["list(A)::lastIndexOf(A) int"],
        Cost::Items,
        |args, meter| position(args, meter, true),
    ),
    (
        &["list(A)::includes(A) bool"],
        Cost::Items,
        |args, meter| match args {
            [Val::List(list), value] => contains(list, value, meter).map(Val::Bool),
            _ => Err(Failure::NoOverload),
        },
    ),
    (&["list(A)::slice(int, int) list(A)"], Cost::Slice, slice),
    (&["list(A)::reverse() list(A)"], Cost::Reverse, |args, _| {
        let mut items = items(args)?;
        items.reverse();
        Ok(Val::from(items))
    }),
    (
        &["list(A)::distinct() list(A)"],
        Cost::Square,
        |args, meter| {
            let mut known: Vec<Val<'_>> = Vec::new();
            for item in items(args)? {
                let mut found = false;
                for other in &known {
                    found = found || equal(other, &item, meter)?;
                }
                if !found {
                    known.push(item);
                }
            }
            Ok(Val::from(known))
        },
    ),
    (
        &[
            "list(int)::sort() list(int)",
            "list(uint)::sort() list(uint)",
            "list(double)::sort() list(double)",
            "list(bool)::sort() list(bool)",
            "list(duration)::sort() list(duration)",
            "list(timestamp)::sort() list(timestamp)",
            "list(string)::sort() list(string)",
            "list(bytes)::sort() list(bytes)",
        ],
        Cost::Square,
        sort,
    ),
    (
        &[
            "list(dyn)::flatten() list(dyn)",
            "list(dyn)::flatten(int) list(dyn)",
        ],
        Cost::Flatten,
        |args, meter| {
            let depth = match args {
                [_, Val::Int(depth)] if *depth < 0 => {
                    return Err(Failure::error("level must be non-negative"));
                }
                [_, Val::Int(depth)] => (*depth).min(MAX_DEPTH),
                _ => 1,
            };
            let mut out = Vec::new();
            flatten(items(args)?, depth, &mut out, meter)?;
            Ok(Val::from(out))
        },
    ),
    (
        &["lists.range(int) list(int)"],
        Cost::Range,
        |args, meter| match args {
            [Val::Int(count)] if *count <= MAX_RANGE => {
                meter.spend(count.unsigned_abs())?;
                Ok(Val::from((0..*count).map(Val::Int).collect::<Vec<_>>()))
            }
            _ => Err(Failure::Error(format!("size must be at most {MAX_RANGE}"))),
        },
    ),
    (&["list(A)::first() optional(A)"], Cost::Unit, |args, _| {
        Ok(match args {
            [Val::List(list)] => optional(list.get(0).transpose()?),
            _ => return Err(Failure::NoOverload),
        })
    }),
    (&["list(A)::last() optional(A)"], Cost::Unit, |args, _| {
        Ok(match args {
            [Val::List(list)] => {
                let last = list.len().checked_sub(1).and_then(|last| list.get(last));
                optional(last.transpose()?)
            }
            _ => return Err(Failure::NoOverload),
        })
    }),
];

fn optional(found: Option<Val<'_>>) -> Val<'_> {
    found.map_or(Val::Optional(None), Val::some)
}

fn iterate<'r, 'a>(
    args: &'r [Val<'a>],
) -> Result<impl Iterator<Item = Result<Val<'a>, Failure>> + use<'r, 'a>, Failure> {
    match args {
        [Val::List(list), ..] => Ok(list.iter()),
        _ => Err(Failure::NoOverload),
    }
}

fn items<'a>(args: &[Val<'a>]) -> Result<Vec<Val<'a>>, Failure> {
    match args {
        [Val::List(list), ..] => list.iter().collect(),
        _ => Err(Failure::NoOverload),
    }
}

fn extreme<'a>(
    args: &[Val<'a>],
    meter: &mut Meter,
    name: &str,
    is_better: fn(Ordering) -> bool,
) -> Result<Val<'a>, Failure> {
    let mut items = iterate(args)?;
    let empty = || Failure::Error(format!("{name} called on empty list"));
    let mut best = items.next().ok_or_else(empty)??;
    for item in items {
        let item = item?;
        if is_better(compare(&item, &best, meter)?) {
            best = item;
        }
    }
    Ok(best)
}

fn sum<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let mut items = iterate(args)?;
    let Some(mut sum) = items.next().transpose()? else {
        return Ok(Val::Int(0));
    };
    for item in items {
        meter.spend(1)?;
        sum = operators::add(&[sum, item?], meter)?;
    }
    Ok(sum)
}

fn position<'a>(args: &[Val<'a>], meter: &mut Meter, last: bool) -> Result<Val<'a>, Failure> {
    let [Val::List(list), value] = args else {
        return Err(Failure::NoOverload);
    };
    let mut found = -1;
    for (index, item) in list.iter().enumerate() {
        if equal(&item?, value, meter)? {
            found = index as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Val::Int(found))
}

fn slice<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else {
        return Err(Failure::NoOverload);
    };
    let size = list.len();
    let bounds = (usize::try_from(*start), usize::try_from(*end));
    let (Ok(from), Ok(to)) = bounds else {
        let detail = format!("cannot slice({start}, {end}), negative indexes not supported");
        return Err(Failure::Error(detail));
    };
    if from > to {
        let detail = format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        );
        return Err(Failure::Error(detail));
    }
    if to > size {
        let detail = format!("cannot slice({start}, {end}), list is length {size}");
        return Err(Failure::Error(detail));
    }
    meter.spend((to - from) as u64)?;
    let items = (from..to).filter_map(|index| list.get(index));
    items.collect::<Result<Vec<_>, _>>().map(Val::from)
}

fn sort<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let mut items = items(args)?;
    let steps = u64::from(items.len().checked_ilog2().unwrap_or(0)) + 1;
    meter.spend((items.len() as u64).saturating_mul(steps))?;
    let mut failure = None;
    items.sort_by(|a, b| {
        // After a failure nothing is compared, but the order must be a total one.
        if failure.is_some() {
            return Ordering::Equal;
        }
        compare(a, b, meter).unwrap_or_else(|error| {
            failure = Some(error);
            Ordering::Equal
        })
    });
    match failure {
        Some(failure) => Err(failure),
        None => Ok(Val::from(items)),
    }
}

fn flatten<'a>(
    items: Vec<Val<'a>>,
    depth: i64,
    out: &mut Vec<Val<'a>>,
    meter: &mut Meter,
) -> Result<(), Failure> {
    for item in items {
        meter.spend(1)?;
        match item {
            Val::List(inner) if depth > 0 => {
                let inner = List::iter(&inner).collect::<Result<Vec<_>, _>>()?;
                flatten(inner, depth - 1, out, meter)?;
            }
            other => out.push(other),
        }
    }
    Ok(())
}
