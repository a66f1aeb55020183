//! Defaults that descriptions state are those that the gateway sets, and it sets no others.

use serde_json::Value;

use super::paths::{self, Path};
use super::{failures, objects, statements};

#[test]
fn stated_defaults_are_those_that_the_gateway_sets() {
    let failures = failures(statements::default, |path, stated| match default_at(path) {
        Some(value) if value == *stated => Ok(()),
        found => Err(format!("is {found:?}, not {stated}")),
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A default that depends on other fields is stated in words: "If left out, …".
#[test]
fn no_default_is_left_unsaid() {
    let said = |text: &str| {
        ["efault", "eft out", "gateway"]
            .iter()
            .any(|word| text.contains(word))
    };
    let unsaid = paths::all().into_iter().filter_map(|path| {
        let text = statements::text(&path.name()).filter(|text| !said(text))?;
        let is_scalar = path.field().message().is_none();
        let value = default_at(&path).filter(|_| is_scalar && !path.is_of_status())?;
        Some(format!("{} = {value}: {text}", path.shown()))
    });
    let unsaid: Vec<_> = unsaid.collect();
    assert!(unsaid.is_empty(), "{}", unsaid.join("\n"));
}

/// Returns the value that the gateway sets if the field is left out and the object that it is in is not; a value that
/// JSON always has is none.
fn default_at(path: &Path) -> Option<Value> {
    let examples = objects::examples(path.kind);
    let object = path.without(examples.first()?);
    let filled = path.get(&objects::with_defaults(path.kind, &object)?);
    let is_zero = match &filled {
        Value::Null => true,
        Value::String(text) => ["", "0"].contains(&&**text) && path.field().always,
        Value::Number(number) => number.as_f64() == Some(0.0) && path.field().always,
        Value::Bool(value) => !value && path.field().always,
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty() && path.field().value,
    };
    (!is_zero).then_some(filled)
}
