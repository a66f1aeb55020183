//! Regular expressions. Those that are literals are compiled with their rule.

use std::sync::Arc;

use super::super::meter::{Failure, Meter, scan};
use super::super::values::Val;
use super::{Cost, Entry};
use crate::pattern::{MAX_SIZE, Pattern};

/// The cost of compiling an expression for one call: some milliseconds.
const COMPILE: u64 = 10_000;
/// The memory of an expression that is compiled for one call, in bytes.
const MAX_CALL_SIZE: usize = 128 << 10;
/// The smallest size limit of programs, in bytes.
const MIN_SIZE: usize = 4 << 10;
/// The size of a program that costs one unit per ten bytes of text, in bytes: upstream takes four characters of the
/// expression for a unit, and a state has some 32 bytes.
const SIZE_OF_UNIT: u64 = 1 << 10;

/// A compiled expression, and the cost of matching it against ten bytes.
#[derive(Debug)]
pub(in super::super) struct Compiled {
    pattern: Pattern,
    weight: u64,
}

impl Compiled {
    /// Compiles a literal.
    pub(in super::super) fn new(source: &str) -> Result<Self, String> {
        Self::within(source, MAX_SIZE)
    }

    /// The size of the program is not known, but whether it is within a limit.
    fn within(source: &str, max: usize) -> Result<Self, String> {
        let mut size = MIN_SIZE;
        let pattern = loop {
            match Pattern::within(source, size) {
                Ok(pattern) => break pattern,
                Err(_) if size < max => size *= 2,
                Err(error) => return Err(error),
            }
        };
        let by_length = (source.len() as u64).div_ceil(4);
        let weight = match size {
            MIN_SIZE => by_length,
            size => by_length.max(size as u64 / SIZE_OF_UNIT),
        };
        Ok(Self { pattern, weight })
    }

    pub(in super::super) fn source(&self) -> &str {
        self.pattern.source()
    }
}

pub(super) const ENTRIES: &[Entry] = &[
    (&["string::matches(string) bool"], Cost::Match, matches),
    // The table of upstream has the member alone.
    (&["matches(string, string) bool"], Cost::Unit, matches),
    (
        &["string::find(string) string"],
        Cost::Match,
        |args, meter| {
            with(args, meter, |pattern, text, _| {
                Ok(Val::from(pattern.find(text).unwrap_or_default()))
            })
        },
    ),
    (
        &[
            "string::findAll(string) list(string)",
            "string::findAll(string, int) list(string)",
        ],
        Cost::Match,
        |args, meter| {
            let limit = match args {
                [_, _, Val::Int(limit)] => usize::try_from(*limit).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            with(args, meter, |pattern, text, meter| {
                let mut found = Vec::new();
                for part in pattern.find_all(text).take(limit) {
                    meter.spend(1)?;
                    found.push(Val::from(part));
                }
                Ok(Val::from(found))
            })
        },
    ),
];

fn matches<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    with(args, meter, |pattern, text, _| {
        Ok(Val::Bool(pattern.is_match(text)))
    })
}

fn with<'a>(
    args: &[Val<'a>],
    meter: &mut Meter,
    then: impl FnOnce(&Pattern, &str, &mut Meter) -> Result<Val<'a>, Failure>,
) -> Result<Val<'a>, Failure> {
    let (text, compiled) = match args {
        [Val::String(text), Val::Pattern(compiled), ..] => (text, Arc::clone(compiled)),
        [Val::String(text), Val::String(source), ..] => {
            meter.spend(COMPILE)?;
            let compiled = Compiled::within(source, MAX_CALL_SIZE).map_err(Failure::Error)?;
            (text, Arc::new(compiled))
        }
        _ => return Err(Failure::NoOverload),
    };
    meter.spend(scan(text.len() as u64 + 1).saturating_mul(compiled.weight))?;
    then(&compiled.pattern, text, meter)
}

/// Returns which argument of a function is a regular expression.
pub(in super::super) fn argument(function: &str) -> Option<usize> {
    matches!(function, "matches" | "find" | "findAll").then_some(1)
}
