//! Changes of an object and expected errors, as texts.
//!
//! A change is a list of assignments such as `spec.ports[0].name="http" ; metadata.labels["a.b"]=null`. Values are
//! JSON; `null` removes a field, and the index after the last adds an entry. The expected errors are the reasons and
//! fields of the causes in any order, such as `Invalid spec.ports[0].name, Required spec.selector`; the reason of the
//! error itself if it has no causes; empty if the object is accepted.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Value, json};
use setpoint_proto::ApiError;

/// A change of the base, and the expected errors.
pub type Creation = (&'static str, &'static str);
/// A change of the base before it is stored, one of the update, and the expected errors.
pub type Change = (&'static str, &'static str, &'static str);

/// Returns how an outcome differs from the expected errors, if it does.
pub fn differs(change: &str, outcome: Result<Value, ApiError>, expected: &str) -> Option<String> {
    let message = outcome.as_ref().err().map(|error| error.message.clone());
    let found = outcome
        .err()
        .map(|error| errors_of(&error))
        .unwrap_or_default();
    let mut wanted: Vec<_> = expected.split(", ").filter(|one| !one.is_empty()).collect();
    wanted.sort_unstable();
    (found != wanted).then(|| {
        let message = message.unwrap_or_else(|| "accepted".into());
        format!(
            "{change}\n    expected [{expected}]\n    found    [{}]\n    {message}",
            found.join(", ")
        )
    })
}

fn errors_of(error: &ApiError) -> Vec<String> {
    let causes = error.causes().iter();
    let mut errors: Vec<_> = causes
        .map(|cause| {
            let reason = cause.reason.trim_start_matches("FieldValue");
            format!("{reason} {}", cause.field)
        })
        .collect();
    if errors.is_empty() {
        errors.push(error.reason.name().to_owned());
    }
    // The name of a field may contain a comma; the expected errors are split there, too.
    let mut errors: Vec<_> = errors.join(", ").split(", ").map(str::to_owned).collect();
    errors.sort_unstable();
    errors
}

/// Returns an object with a change.
pub fn changed(base: &Value, change: &str) -> Value {
    let mut object = base.clone();
    for assignment in change.split(" ; ").filter(|one| !one.trim().is_empty()) {
        assign(&mut object, assignment.trim());
    }
    object
}

fn assign(object: &mut Value, assignment: &str) {
    let mut rest = assignment.chars().peekable();
    let mut parts = Vec::new();
    loop {
        match rest.next() {
            Some('=') => break,
            Some('.') => {}
            Some('[') => parts.push(bracket(&mut rest)),
            Some(first) => parts.push(field(first, &mut rest)),
            None => panic!("{assignment} has no value"),
        }
    }
    let text: String = rest.collect();
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
    put(object, &parts, value);
}

fn field(first: char, rest: &mut Peekable<Chars<'_>>) -> Value {
    let mut name = String::from(first);
    while let Some(letter) = rest.next_if(|letter| !['.', '[', '='].contains(letter)) {
        name.push(letter);
    }
    Value::String(name)
}

fn bracket(rest: &mut Peekable<Chars<'_>>) -> Value {
    let inner: String = rest.by_ref().take_while(|letter| *letter != ']').collect();
    serde_json::from_str(&inner).unwrap()
}

fn put(object: &mut Value, parts: &[Value], value: Value) {
    let Some((part, parts)) = parts.split_first() else {
        *object = value;
        return;
    };
    let below = match part {
        Value::String(name) => {
            if parts.is_empty() && value.is_null() {
                object.as_object_mut().map(|fields| fields.remove(name));
                return;
            }
            &mut object[name.as_str()]
        }
        index => {
            let index = usize::try_from(index.as_u64().unwrap()).unwrap();
            if object.is_null() {
                *object = json!([]);
            }
            let list = object.as_array_mut().unwrap();
            if parts.is_empty() && value.is_null() {
                list.remove(index);
                return;
            }
            if index == list.len() {
                list.push(Value::Null);
            }
            &mut list[index]
        }
    };
    put(below, parts, value);
}
