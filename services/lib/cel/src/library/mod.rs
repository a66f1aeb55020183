//! The functions that expressions can call.

pub(super) mod authz;
mod convert;
pub(super) mod cost;
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

use super::meter::{Failure, Meter};
use super::types::Type;
use super::values::Val;
pub(super) use cost::Cost;

/// The implementation of a call, with the receiver as its first argument.
type Run = for<'a> fn(&[Val<'a>], &mut Meter) -> Result<Val<'a>, Failure>;

/// Signatures that one implementation has, and what a call costs. A receiver is written before `::`; capital letters
/// stand for any type.
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
    meter.spend(overload.cost.of(args))?;
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

#[cfg(test)]
mod tests;
