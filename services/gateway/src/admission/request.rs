//! The values of the variables of a policy: the objects in the version that the policy matched, and the request.

use serde_json::{Map, Value, json};
use setpoint_codec::{CustomObject, Kind, Object};
use setpoint_proto::ApiError;
use setpoint_proto::core::Namespace;
use setpoint_proto::meta::ObjectMeta;

use super::params::document;
use super::{Attributes, Operation};
use crate::kinds::view;
use crate::registry::Registry;

/// The values for a policy that a request was matched with as one of some resource.
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
        registry: &Registry,
        request: &Attributes<'_>,
        kind: &'static Kind,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            kind,
            object: in_version(registry, request, request.object, kind).await?,
            old: in_version(registry, request, request.old, kind).await?,
            request: admission_request(request, kind),
        })
    }
}

/// Returns an object in the version of a kind; the body of a subresource that is no version of it, as it is.
async fn in_version(
    registry: &Registry,
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
        return Ok(document(&*view::of_stored(object.clone_box(), kind)));
    };
    let converted = registry.converter().convert(vec![custom.clone()], kind);
    let converted = converted.await?;
    Ok(converted.first().map_or(Value::Null, |one| document(one)))
}

/// Returns the variable `request`: an AdmissionRequest without the objects.
fn admission_request(request: &Attributes<'_>, matched: &Kind) -> Value {
    let (target, user) = (request.target, &request.context.user);
    let part = target.subresource.name();
    let own = request.kind();
    // The body of a subresource has one version only.
    let kind = if own == target.served { matched } else { own };
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

/// Returns the variable `namespaceObject`.
pub(super) fn namespace_object(namespace: Namespace) -> Value {
    let meta = namespace.metadata;
    let namespace = Namespace {
        metadata: ObjectMeta {
            managed_fields: Vec::new(),
            owner_references: Vec::new(),
            ..meta
        },
        ..namespace
    };
    document(&namespace)
}
