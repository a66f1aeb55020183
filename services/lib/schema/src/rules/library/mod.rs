//! The functions that expressions can call.

pub(super) mod authz;
mod convert;
mod format;
mod jsonpatch;
mod lists;
mod net;
pub(super) mod operators;
mod optional;
mod quantity;
pub(super) mod regex;
pub(super) mod semver;
mod sets;
mod signature;
mod strings;
mod template;
mod timestamps;
pub(super) mod url;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::meter::{Failure, Meter, scan};
use super::types::Type;
use super::values::Val;

/// The implementation of a call, with the receiver as its first argument.
type Run = for<'a> fn(&[Val<'a>], &mut Meter) -> Result<Val<'a>, Failure>;

/// Signatures that one implementation has, and what a call costs. A receiver is written before `::`; capital letters stand for any type.
type Entry = (&'static [&'static str], Cost, Run);

/// A function, by its name.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) overloads: Vec<Overload>,
}

/// A function for arguments of some types.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) is_member: bool,
    pub(super) parameters: Vec<Type<'static>>,
    pub(super) result: Type<'static>,
    pub(super) cost: Cost,
    run: Run,
}

/// The cost of a call, by the sizes of its arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cost {
    Unit,
    /// The first argument is read.
    First,
    /// The first argument is read and a result of its size is written.
    Copy,
    /// The last argument is read.
    Last,
    /// All arguments are read.
    All,
    /// The first argument is searched for the second.
    Search,
    /// The first argument is matched against the second.
    Match,
    /// The arguments are compared; the steps are paid as they are made.
    Compare,
    /// Every item of the first argument is visited.
    Items,
    /// Every item of the last argument is visited.
    LastItems,
    /// Every item of the first argument is compared with every item of the second.
    Pairs,
}

impl Cost {
    /// Returns the cost for arguments of these sizes.
    pub(super) fn of(self, sizes: &[u64]) -> u64 {
        let first = sizes.first().copied().unwrap_or(1);
        let last = sizes.last().copied().unwrap_or(1);
        let second = sizes.get(1).copied().unwrap_or(1);
        match self {
            Cost::Unit => 1,
            Cost::First => scan(first),
            Cost::Copy => scan(first.saturating_mul(2)),
            Cost::Last => scan(last),
            Cost::All => sizes
                .iter()
                .fold(0, |sum, size| scan(*size).saturating_add(sum)),
            Cost::Search => scan(first).saturating_mul(scan(second)),
            Cost::Match => scan(first.saturating_add(1)).saturating_mul(second.div_ceil(4)),
            Cost::Compare => scan(first.min(last)),
            Cost::Items => first,
            Cost::LastItems => last,
            Cost::Pairs => first.saturating_mul(last),
        }
        .max(1)
    }
}

impl Overload {
    /// Whether the overload is for these values. A list is not looked into.
    fn accepts(&self, args: &[Val<'_>]) -> bool {
        let mut pairs = self.parameters.iter().zip(args);
        pairs.all(|(parameter, arg)| signature::matches(parameter, arg))
    }
}

/// Calls the one of some overloads that is for the values.
pub(super) fn call<'a>(
    overloads: &[&'static Overload],
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, Failure> {
    let found = overloads.iter().find(|overload| overload.accepts(args));
    let overload = found.ok_or(Failure::NoOverload)?;
    let cost = match overload.cost {
        // Paid by what is done.
        Cost::Compare | Cost::Match => 1,
        cost => {
            let mut sizes = [1; 5];
            for (size, arg) in sizes.iter_mut().zip(args) {
                *size = arg.size();
            }
            cost.of(sizes.get(..args.len()).unwrap_or(&sizes))
        }
    };
    meter.spend(cost)?;
    (overload.run)(args, meter)
}

/// Returns the function of a name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// The entries of all parts of the library.
const ENTRIES: [&[Entry]; 15] = [
    operators::ENTRIES,
    convert::ENTRIES,
    strings::ENTRIES,
    lists::ENTRIES,
    sets::ENTRIES,
    regex::ENTRIES,
    timestamps::ENTRIES,
    optional::ENTRIES,
    quantity::ENTRIES,
    net::ENTRIES,
    url::ENTRIES,
    semver::ENTRIES,
    format::ENTRIES,
    authz::ENTRIES,
    jsonpatch::ENTRIES,
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let mut functions = HashMap::new();
    for (signatures, cost, run) in ENTRIES.into_iter().flatten() {
        for text in *signatures {
            let Some(signature) = signature::parse(text) else {
                continue;
            };
            let overload = Overload {
                is_member: signature.is_member,
                parameters: signature.parameters,
                result: signature.result,
                cost: *cost,
                run: *run,
            };
            let name = signature.name;
            let function = functions.entry(name).or_insert_with(|| Function {
                name,
                overloads: Vec::new(),
            });
            function.overloads.push(overload);
        }
    }
    functions
});

/// Makes a string of computed length, which is paid first.
fn text<'a>(
    length: usize,
    meter: &mut Meter,
    make: impl FnOnce() -> String,
) -> Result<Val<'a>, Failure> {
    meter.spend(scan(length as u64))?;
    Ok(Val::from(make()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_read() {
        for (signatures, _, _) in ENTRIES.into_iter().flatten() {
            for text in *signatures {
                assert!(signature::parse(text).is_some(), "{text}");
            }
        }
    }
}
