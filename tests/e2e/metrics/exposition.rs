//! A strict parser of Prometheus' text format.

#![allow(clippy::panic, reason = "tests may panic")]

use std::collections::BTreeMap;

/// One metric of a process.
#[derive(Debug, Default)]
pub struct Family {
    pub help: String,
    pub r#type: String,
    pub samples: usize,
}

/// Parses all metrics of a text, by name.
///
/// # Panics
/// If a line is invalid, or a sample comes before its HELP and TYPE.
pub fn read(text: &str) -> BTreeMap<String, Family> {
    let mut families = BTreeMap::<String, Family>::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or((rest, ""));
            assert!(!families.contains_key(name), "{name} is declared twice");
            families.entry(name.to_owned()).or_default().help = help.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            families.entry(name.to_owned()).or_default().r#type = kind.to_owned();
        } else if !line.is_empty() {
            let name = sample(line);
            let family = family_of(&families, name);
            let family = family.unwrap_or_else(|| panic!("no HELP and TYPE before: {line}"));
            families.entry(family).or_default().samples += 1;
        }
    }
    families
}

/// Returns the metric that a series belongs to; a histogram has three series.
pub fn family_of(families: &BTreeMap<String, Family>, series: &str) -> Option<String> {
    let parts = ["_bucket", "_sum", "_count"];
    let base = parts.iter().find_map(|part| series.strip_suffix(part));
    let histogram = base.filter(|base| {
        families
            .get(*base)
            .is_some_and(|family| family.r#type == "histogram")
    });
    let name = histogram.or_else(|| families.contains_key(series).then_some(series));
    name.map(str::to_owned)
}

/// Returns the name of the series of a sample; asserts that the line ends with a number.
fn sample(line: &str) -> &str {
    let (series, value) = line.rsplit_once(' ').unwrap_or((line, ""));
    let number = value.parse::<f64>().is_ok() || value == "+Inf" || value == "-Inf";
    assert!(number, "no number: {line}");
    let name = series.split('{').next().unwrap_or_default();
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    assert!(
        !name.is_empty() && name.chars().all(letter),
        "no name: {line}"
    );
    name
}
