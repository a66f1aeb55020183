//! Named formats of strings.

use setpoint_model::names;

use super::super::meter::Failure;
use super::super::values::Val;
use super::cost::matching;
use super::{Cost, Entry};
use crate::strfmt;

/// The names of formats.
const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

macro_rules! named {
    ($name:literal, $index:literal) => {
        (
            &[concat!("format.", $name, "() format")],
            Cost::Unit,
            |_, _| Ok(Val::Format(NAMES[$index])),
        )
    };
}

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["format.named(string) optional(format)"],
        Cost::Unit,
        |args, _| match args {
            [Val::String(name)] => {
                let found = NAMES.iter().find(|known| **known == &**name);
                Ok(found.map_or(Val::Optional(None), |name| Val::some(Val::Format(name))))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
    named!("dns1123Label", 0),
    named!("dns1123Subdomain", 1),
    named!("dns1035Label", 2),
    named!("qualifiedName", 3),
    named!("dns1123LabelPrefix", 4),
    named!("dns1123SubdomainPrefix", 5),
    named!("dns1035LabelPrefix", 6),
    named!("labelValue", 7),
    named!("uri", 8),
    named!("uuid", 9),
    named!("byte", 10),
    named!("date", 11),
    named!("datetime", 12),
    (
        &["format::validate(string) optional(list(string))"],
        Cost::Format,
        |args, meter| match args {
            [Val::Format(name), Val::String(text)] => {
                meter.spend(matching(text.len() as u64, expression(name)))?;
                let problems = problems(name, text);
                if problems.is_empty() {
                    return Ok(Val::Optional(None));
                }
                let problems: Vec<_> = problems.into_iter().map(Val::from).collect();
                Ok(Val::some(Val::from(problems)))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
];

/// Returns the length of the regular expression that upstream assumes for a format.
fn expression(format: &str) -> u64 {
    match format {
        "dns1123Subdomain" | "dns1123SubdomainPrefix" | "qualifiedName" => 60,
        "labelValue" => 40,
        "uri" => 1103,
        "uuid" => 70,
        "byte" => 84,
        "date" | "datetime" => 71,
        _ => 30,
    }
}

fn problems(format: &str, text: &str) -> Vec<String> {
    let unless = |valid: bool, problem: &str| match valid {
        true => Vec::new(),
        false => vec![problem.to_owned()],
    };
    match format {
        "dns1123Label" => names::validate_dns_label(text),
        "dns1123LabelPrefix" => names::validate_dns_label(&completed(text)),
        "dns1123Subdomain" => names::validate_dns_subdomain(text),
        "dns1123SubdomainPrefix" => names::validate_dns_subdomain(&completed(text)),
        "dns1035Label" => names::validate_dns1035_label(text),
        "dns1035LabelPrefix" => names::validate_dns1035_label(&completed(text)),
        "qualifiedName" => names::validate_qualified_name(text),
        "labelValue" => names::validate_label_value(text),
        "uri" => unless(strfmt::is_request_uri(text), "invalid URI for request"),
        "uuid" => unless(
            strfmt::allows("uuid", text),
            "does not match the UUID format",
        ),
        "byte" => unless(strfmt::allows("byte", text), "invalid base64"),
        "date" => unless(strfmt::allows("date", text), "invalid date"),
        _ => unless(strfmt::allows("date-time", text), "invalid datetime"),
    }
}

/// A prefix may end with a dash, which a name may not.
fn completed(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => prefix.to_owned(),
    }
}
