//! Semantic versions.

use std::sync::Arc;

pub(in super::super) use ::semver::Version;

use super::super::meter::Failure;
use super::super::values::Val;
use super::{Cost, Entry};

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["semver(string) semver", "semver(string, bool) semver"],
        Cost::First,
        |args, _| {
            let version = parse(args)?;
            version.map(|version| Val::Semver(Arc::new(version)))
        },
    ),
    (
        &["isSemver(string) bool", "isSemver(string, bool) bool"],
        Cost::First,
        |args, _| Ok(Val::Bool(parse(args)?.is_ok())),
    ),
    (&["semver::major() int"], Cost::Unit, |args, _| {
        number(args, |version| version.major)
    }),
    (&["semver::minor() int"], Cost::Unit, |args, _| {
        number(args, |version| version.minor)
    }),
    (&["semver::patch() int"], Cost::Unit, |args, _| {
        number(args, |version| version.patch)
    }),
    (
        &["semver::isGreaterThan(semver) bool"],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Bool(a.cmp_precedence(b).is_gt())),
    ),
    (
        &["semver::isLessThan(semver) bool"],
        Cost::Unit,
        |args, _| two(args, |a, b| Val::Bool(a.cmp_precedence(b).is_lt())),
    ),
    (&["semver::compareTo(semver) int"], Cost::Unit, |args, _| {
        two(args, |a, b| Val::Int(a.cmp_precedence(b) as i64))
    }),
];

/// Reads a version. The outer error is that of a call with other arguments.
fn parse(args: &[Val<'_>]) -> Result<Result<Version, Failure>, Failure> {
    let text = match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => (**text).to_owned(),
        [Val::String(text), Val::Bool(true)] => normalized(text),
        _ => return Err(Failure::NoOverload),
    };
    let parsed = Version::parse(&text);
    Ok(parsed.map_err(|error| Failure::Error(error.to_string())))
}

/// Removes a leading `v` and leading zeros, and completes the numbers.
fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let plain = |number: &str| match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0".to_owned(),
        number => number.to_owned(),
    };
    let mut numbers: Vec<_> = numbers.split('.').map(plain).collect();
    while numbers.len() < 3 {
        numbers.push("0".to_owned());
    }
    format!("{}{rest}", numbers.join("."))
}

fn number<'a>(args: &[Val<'a>], then: impl FnOnce(&Version) -> u64) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Semver(version)] => {
            let number = i64::try_from(then(version));
            number
                .map(Val::Int)
                .map_err(|_| super::operators::overflow())
        }
        _ => Err(Failure::NoOverload),
    }
}

fn two<'a>(
    args: &[Val<'a>],
    then: impl FnOnce(&Version, &Version) -> Val<'a>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Semver(a), Val::Semver(b)] => Ok(then(a, b)),
        _ => Err(Failure::NoOverload),
    }
}
