//! Tables of changes to an object, with the errors that the registry returns for each.
//!
//! A change is a list of assignments such as `spec.ports[0].name="http" ; metadata.labels["a.b"]=null`. Values are JSON;
//! `null` removes a field, and the index after the last adds an entry. The expected errors are the reasons and fields of the
//! causes in any order, such as `Invalid spec.ports[0].name, Required spec.selector`; the reason of the error itself if it
//! has no causes; empty if the object is accepted.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::{Value, json};
use setpoint_codec::{Object, kinds};
use setpoint_gateway::registry::{ObjectResponse, RequestContext, Target};
use setpoint_proto::ApiError;
use setpoint_store::contract::objects::NAMESPACE;

use crate::registry::gateway::TestGateway;

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
    pub async fn created(&self, cases: &[Creation]) {
        let gateway = TestGateway::start().await;
        let mut wrong = Vec::new();
        for (change, expected) in cases {
            let object = changed(&self.object, change);
            let outcome = self.create(&gateway, &object, true).await;
            wrong.extend(differs(change, outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks updates with the second change of an object stored with the first.
    pub async fn updated(&self, cases: &[Change]) {
        self.replaced("", cases).await;
    }

    /// Checks updates of the status with the second change, after one with the first.
    pub async fn reported(&self, cases: &[Change]) {
        self.replaced("status", cases).await;
    }

    async fn replaced(&self, part: &str, cases: &[Change]) {
        let mut wrong = Vec::new();
        for (before, change, expected) in cases {
            let gateway = TestGateway::start().await;
            let first = changed(&self.object, before);
            let mut stored = self.create(&gateway, &first, false).await.expect(before);
            if !part.is_empty() {
                let first = changed(&stored, before);
                stored = self
                    .update(&gateway, part, &first, false)
                    .await
                    .expect(before);
            }
            let outcome = self
                .update(&gateway, part, &changed(&stored, change), true)
                .await;
            wrong.extend(differs(&format!("{before} → {change}"), outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks writes of `sent`, with each of the changes, to a subresource of the stored object. `{uid}` and `{revision}` in a
    /// change stand for those of the object.
    pub async fn written(&self, part: &str, sent: &Value, cases: &[Creation]) {
        let mut wrong = Vec::new();
        for (change, expected) in cases {
            let gateway = TestGateway::start().await;
            let stored = self.create(&gateway, &self.object, false).await.unwrap();
            let own = |field: &str| stored["metadata"][field].as_str().unwrap().to_owned();
            let change = change
                .replace("{uid}", &own("uid"))
                .replace("{revision}", &own("resourceVersion"));
            let outcome = self.write(&gateway, part, &changed(sent, &change)).await;
            wrong.extend(differs(&change, outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    async fn write(
        &self,
        gateway: &TestGateway,
        part: &str,
        sent: &Value,
    ) -> Result<Value, ApiError> {
        let name = self.object["metadata"]["name"].as_str().unwrap();
        let (context, target) = (RequestContext::default(), self.target(name, part));
        let text = |field: &str| sent[field].as_str().unwrap();
        let kind = kinds().by_kind(text("apiVersion"), text("kind")).unwrap();
        let object = kind.from_json(sent.to_string().as_bytes())?;
        let response = match part {
            "binding" => gateway.registry.create(&context, &target, object).await,
            _ => gateway.registry.update(&context, &target, object).await,
        };
        encoded(response?)
    }

    async fn create(
        &self,
        gateway: &TestGateway,
        object: &Value,
        dry: bool,
    ) -> Result<Value, ApiError> {
        let (context, target) = (RequestContext::default().dry(dry), self.target("", ""));
        let object = decoded(&target, object)?;
        encoded(gateway.registry.create(&context, &target, object).await?)
    }

    async fn update(
        &self,
        gateway: &TestGateway,
        part: &str,
        object: &Value,
        dry: bool,
    ) -> Result<Value, ApiError> {
        let name = self.object["metadata"]["name"].as_str().unwrap();
        let (context, target) = (RequestContext::default().dry(dry), self.target(name, part));
        let object = decoded(&target, object)?;
        encoded(gateway.registry.update(&context, &target, object).await?)
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

fn encoded(response: ObjectResponse) -> Result<Value, ApiError> {
    Ok(serde_json::from_slice(&response.into_object()?.to_json()).unwrap())
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
