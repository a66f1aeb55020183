//! Tables of changes to an object, with the errors that validation finds for each.
//!
//! A change is a list of assignments such as `spec.ports[0].name="http" ; metadata.labels["a.b"]=null`. Values are JSON;
//! `null` removes a field, and the index after the last adds an entry. The expected errors are the reasons and fields of the
//! causes in any order, such as `Invalid spec.ports[0].name, Required spec.selector`; the reason of the error itself if it
//! has no causes; empty if the object is accepted.

use std::iter::Peekable;
use std::str::Chars;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_codec::{Object, kinds};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{Identity, Target, create, update};
use setpoint_model::names;
use setpoint_proto::ApiError;

const NAMESPACE: &str = "default";

/// A change of the base, and the expected errors.
pub type Creation = (&'static str, &'static str);
/// A change of the base before it is stored, one of the update, and the expected errors.
pub type Change = (&'static str, &'static str, &'static str);

/// An object to which changes are applied.
pub struct Base {
    pub resource: &'static str,
    pub object: Value,
}

impl Base {
    /// Checks creates, with each of the changes.
    pub fn created(&self, cases: &[Creation]) {
        let wrong = cases.iter().filter_map(|(change, expected)| {
            differs(
                change,
                self.create(&changed(&self.object, change)),
                expected,
            )
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks updates with the second change of an object stored with the first.
    pub fn updated(&self, cases: &[Change]) {
        self.replaced("", cases);
    }

    /// Checks updates of the status with the second change, after one with the first.
    pub fn reported(&self, cases: &[Change]) {
        self.replaced("status", cases);
    }

    fn replaced(&self, part: &str, cases: &[Change]) {
        let wrong = cases.iter().filter_map(|(before, change, expected)| {
            let mut stored = self.create(&changed(&self.object, before)).expect(before);
            if !part.is_empty() {
                let first = changed(&stored, before);
                stored = self.update(part, &stored, &first).expect(before);
            }
            let outcome = self.update(part, &stored, &changed(&stored, change));
            differs(&format!("{before} → {change}"), outcome, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks writes of `sent`, with each of the changes, to a subresource of the stored object.
    pub fn written(&self, part: &str, sent: &Value, cases: &[Creation]) {
        let stored = self.create(&self.object).expect("the base is valid");
        let wrong = cases.iter().filter_map(|(change, expected)| {
            let outcome = self.update(part, &stored, &changed(sent, change));
            differs(change, outcome, expected)
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Returns the message of the error of a create with a change; empty if it is accepted.
    pub fn refusal(&self, change: &str) -> String {
        let outcome = self.create(&changed(&self.object, change));
        outcome
            .err()
            .map_or_else(String::new, |error| error.message)
    }

    /// Returns the object as it is stored.
    fn create(&self, object: &Value) -> Result<Value, ApiError> {
        let mut target = self.target("", "");
        let mut object = decoded(&target, object)?;
        let rules = setpoint_kinds::of(target.kind);
        metadata::prepare_create(object.meta_mut(), &target, Timestamp::now())?;
        let meta = object.meta_mut();
        if meta.name.is_empty() && !meta.generate_name.is_empty() {
            meta.name = names::child(&meta.generate_name, "x7k2p");
        }
        target.name.clone_from(&meta.name);
        rules.fill_defaults(&mut *object);
        rules.set_requester(&mut *object, &Identity::default());
        create::complete(&target, &mut *object)?;
        Ok(stored(&*object))
    }

    fn update(&self, part: &str, old: &Value, new: &Value) -> Result<Value, ApiError> {
        let name = old["metadata"]["name"].as_str().unwrap();
        let target = self.target(name, part);
        let (old, mut new) = (decoded(&target, old)?, decoded(&target, new)?);
        update::prepare(&target, &*old, &mut *new)?;
        update::validate(&target, &*old, &mut *new)?;
        Ok(stored(&*new))
    }

    fn target(&self, name: &str, part: &str) -> Target {
        let kind = kinds().by_resource(self.resource).unwrap();
        let namespace = if kind.namespaced { NAMESPACE } else { "" };
        Target::new(kind, namespace, name, part).unwrap()
    }
}

fn decoded(target: &Target, object: &Value) -> Result<Box<dyn Object>, ApiError> {
    Ok(target.kind.from_json(object.to_string().as_bytes())?)
}

fn stored(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).unwrap()
}

fn differs(change: &str, outcome: Result<Value, ApiError>, expected: &str) -> Option<String> {
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

fn changed(base: &Value, change: &str) -> Value {
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
