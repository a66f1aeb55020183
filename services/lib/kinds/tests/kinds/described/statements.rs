//! What a description states in one of the fixed forms: "Defaults to `X`", "At least 1", "From 1 to 5 entries",
//! "Required." and "Immutable.".

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;
use setpoint_proto::COMMENTS;

/// The unit of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Value,
    Entries,
    Characters,
}

/// A stated bound, inclusive at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub least: Option<i64>,
    pub most: Option<i64>,
    pub unit: Unit,
}

/// Returns all descriptions with the full names of their messages and fields.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    COMMENTS.lines().filter_map(|line| line.split_once('\t'))
}

/// Returns the description of a field by its full name.
pub fn text(name: &str) -> Option<&'static str> {
    static TEXTS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| all().collect());
    TEXTS.get(name).copied()
}

/// Returns the value that the gateway gives the field if it is left out.
pub fn default(text: &str) -> Option<Value> {
    let (_, rest) = text.split_once("Defaults to `")?;
    let (value, _) = rest.split_once('`')?;
    Some(serde_json::from_str(value).unwrap_or_else(|_| value.into()))
}

pub fn is_required(text: &str) -> bool {
    sentences(text).any(|sentence| sentence == "Required")
}

pub fn is_immutable(text: &str) -> bool {
    sentences(text).any(|sentence| sentence == "Immutable")
}

pub fn bound(text: &str) -> Option<Bound> {
    sentences(text).find_map(bound_of)
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(". ")
        .map(|sentence| sentence.trim_end().trim_end_matches('.'))
}

fn bound_of(sentence: &str) -> Option<Bound> {
    let words: Vec<_> = sentence.split([' ', ',']).collect();
    let number = |at: usize| words.get(at)?.parse().ok();
    let (least, most, end) = match *words.first()? {
        "From" if words.get(2) == Some(&"to") => (Some(number(1)?), Some(number(3)?), 4),
        "At" if words.get(1) == Some(&"least") => (Some(number(2)?), None, 3),
        "At" if words.get(1) == Some(&"most") => (None, Some(number(2)?), 3),
        _ => return None,
    };
    let unit = match words.get(end) {
        Some(&"entries") => Unit::Entries,
        Some(&("characters" | "bytes")) => Unit::Characters,
        _ => Unit::Value,
    };
    Some(Bound { least, most, unit })
}

#[test]
fn statements_are_read_from_texts() {
    let text = "A port. From 1 to 65535. Required. Immutable. Defaults to `443`, which is usual.";
    assert_eq!(default(text), Some(443.into()));
    assert!(is_required(text) && is_immutable(text));
    let bound = bound(text).unwrap();
    assert_eq!(
        (bound.least, bound.most, bound.unit),
        (Some(1), Some(65535), Unit::Value)
    );
    let entries = bound_of("At most 128 entries, and at most 64 with counters").unwrap();
    assert_eq!(
        (entries.least, entries.most, entries.unit),
        (None, Some(128), Unit::Entries)
    );
    assert!(bound_of("At least one is needed").is_none());
}
