//! The values of the variables of expressions: the objects in the version that a policy or webhook matched, and the
//! request.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_kinds::versions;
use setpoint_proto::ApiError;

use super::{Attributes, Operation};
use crate::admission::Admission;
use crate::errors;

/// The values for a policy or webhook that a request was matched with as one of some resource.
pub(super) struct Values {
    /// The kind of the matched resource.
    pub kind: &'static Kind,
    pub object: Value,
    pub old: Value,
    pub request: Value,
}

impl Values {
    /// Converts the objects of a request to a version.
    ///
    /// # Errors
    /// If they cannot be converted.
    pub(super) async fn of(
        admission: &Admission,
        request: &Attributes<'_>,
        kind: &'static Kind,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            kind,
            object: in_version(admission, request, request.object, kind).await?,
            old: in_version(admission, request, request.old, kind).await?,
            request: admission_request(request, kind),
        })
    }
}

/// The values of a request for all resources that it was matched with.
#[derive(Default)]
pub(super) struct Versions(Vec<Arc<Values>>);

impl Versions {
    /// Returns the values for a resource, which are made once.
    ///
    /// # Errors
    /// If the objects cannot be converted.
    pub(super) async fn of(
        &mut self,
        admission: &Admission,
        request: &Attributes<'_>,
        kind: &'static Kind,
    ) -> Result<Arc<Values>, ApiError> {
        if let Some(known) = self.0.iter().find(|values| *values.kind == *kind) {
            return Ok(known.clone());
        }
        let made = Arc::new(Values::of(admission, request, kind).await?);
        self.0.push(made.clone());
        Ok(made)
    }
}

/// Returns an object that a webhook got in the version of a kind, in the form that it had before.
///
/// # Errors
/// If it cannot be converted.
pub(super) async fn back_in_form(
    admission: &Admission,
    object: Box<dyn Object>,
    form: &'static Kind,
) -> Result<Box<dyn Object>, ApiError> {
    if object.kind() == form {
        return Ok(object);
    }
    let Some(custom) = object.downcast_ref::<CustomObject>() else {
        return Ok(versions::to_stored(object));
    };
    let converted = admission.converter().convert(vec![custom.clone()], form);
    match converted.await?.pop() {
        Some(converted) => Ok(Box::new(converted)),
        None => Err(errors::not_custom(form)),
    }
}

/// Returns an object in the version of a kind; the body of a subresource that is no version of it, as it is.
async fn in_version(
    admission: &Admission,
    request: &Attributes<'_>,
    object: Option<&dyn Object>,
    kind: &'static Kind,
) -> Result<Value, ApiError> {
    let Some(object) = object else {
        return Ok(Value::Null);
    };
    if object.kind() == kind || request.kind() != request.target.served {
        return Ok(document(object));
    }
    let custom = object.downcast_ref::<CustomObject>();
    let Some(custom) = custom else {
        return Ok(document(&*versions::of_stored(object.clone_box(), kind)));
    };
    let converted = admission.converter().convert(vec![custom.clone()], kind);
    let converted = converted.await?;
    Ok(converted.first().map_or(Value::Null, |one| document(one)))
}

/// Returns the variable `request`: an AdmissionRequest without the objects.
fn admission_request(request: &Attributes<'_>, matched: &'static Kind) -> Value {
    let (target, user) = (request.target, &request.context.user);
    let part = target.subresource.name();
    let (own, kind) = (request.kind(), request.kind_as(matched));
    json!({
        "uid": "",
        "kind": group_version(kind, "kind", &kind.kind),
        "resource": group_version(matched, "resource", &matched.plural),
        "subResource": part,
        "requestKind": group_version(own, "kind", &own.kind),
        "requestResource": group_version(target.served, "resource", &target.served.plural),
        "requestSubResource": part,
        "name": target.name,
        "namespace": request.namespace(),
        "operation": request.operation.name(),
        "userInfo": {
            "username": user.name,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
        },
        "dryRun": request.context.dry_run,
        "options": options(request),
    })
}

fn group_version(of: &Kind, name: &str, value: &str) -> Value {
    json!({ "group": of.group, "version": of.version, name: value })
}

/// Returns the options of the request, as upstream's `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
fn options(request: &Attributes<'_>) -> Value {
    let kind = match request.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
        Operation::Connect => return Value::Null,
    };
    let mut options = match request.options.map(|options| document(options)) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    options.insert("kind".into(), kind.into());
    options.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    if request.options.is_none() && !request.context.manager.is_empty() {
        let manager = request.context.manager.as_str();
        options.insert("fieldManager".into(), manager.into());
    }
    if request.context.dry_run {
        options.insert("dryRun".into(), json!(["All"]));
    }
    options.into()
}

/// Returns the JSON of an object, with its kind.
pub(super) fn document(object: &dyn Object) -> Value {
    serde_json::from_slice(&object.to_json()).unwrap_or_default()
}
