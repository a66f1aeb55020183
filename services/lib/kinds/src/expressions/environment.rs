//! The variables that the expressions of policies can use.

use std::sync::LazyLock;

use setpoint_cel::{Environment, Global};
use setpoint_schema::{AdditionalProperties, Node};

/// The types of the objects that a policy is checked against; without them, they are known when the policy is
/// evaluated.
#[derive(Clone, Copy, Default)]
pub struct Types<'n> {
    /// The type of `object` and `oldObject`.
    pub object: Option<&'n Node>,
    /// The type of `params`.
    pub params: Option<&'n Node>,
}

/// Returns the environment of the expressions of a policy. Variables that an expression does not have have no name, so
/// that all expressions of a policy have one order of values: see `Inputs` of the gateway.
pub fn of_policy<'n>(has_params: bool, has_authorizer: bool, types: Types<'n>) -> Environment<'n> {
    let object = types.object.map_or(Global::Any, Global::Object);
    let params = types.params.map_or(Global::Any, Global::Object);
    let named = |name, is_there| if is_there { name } else { "" };
    Environment::new(&[
        ("object", object),
        ("oldObject", object),
        ("namespaceObject", Global::Object(&NAMESPACE)),
        ("request", Global::Object(&REQUEST)),
        (named("params", has_params), params),
        (named("authorizer", has_authorizer), Global::Authorizer),
        (
            named("authorizer.requestResource", has_authorizer),
            Global::ResourceCheck,
        ),
    ])
}

/// The AdmissionRequest, without the objects.
static REQUEST: LazyLock<Node> = LazyLock::new(|| {
    let names = |last| object([("group", text()), ("version", text()), (last, text())]);
    let user = object([
        ("username", text()),
        ("uid", text()),
        ("groups", list(text())),
        ("extra", map(list(text()))),
    ]);
    object([
        ("kind", names("kind")),
        ("resource", names("resource")),
        ("subResource", text()),
        ("requestKind", names("kind")),
        ("requestResource", names("resource")),
        ("requestSubResource", text()),
        ("name", text()),
        ("namespace", text()),
        ("operation", text()),
        ("userInfo", user),
        ("dryRun", of_type("boolean")),
        ("options", any()),
    ])
});

/// The namespace of the request. Managed fields and owners are left out, as upstream does.
static NAMESPACE: LazyLock<Node> = LazyLock::new(|| {
    let condition = object([
        ("status", text()),
        ("type", text()),
        ("lastTransitionTime", time()),
        ("message", text()),
        ("reason", text()),
    ]);
    let metadata = object([
        ("name", text()),
        ("generateName", text()),
        ("namespace", text()),
        ("labels", map(text())),
        ("annotations", map(text())),
        ("UID", text()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", of_type("integer")),
        ("deletionTimestamp", time()),
        ("generation", of_type("integer")),
        ("resourceVersion", text()),
        ("finalizers", list(text())),
    ]);
    let status = [("conditions", list(condition)), ("phase", text())];
    object([
        ("metadata", metadata),
        ("spec", object([("finalizers", list(text()))])),
        ("status", object(status)),
    ])
});

pub(super) fn of_type(name: &str) -> Node {
    Node {
        schema_type: name.into(),
        ..Node::default()
    }
}

pub(super) fn text() -> Node {
    of_type("string")
}

pub(super) fn time() -> Node {
    Node {
        format: "date-time".into(),
        ..text()
    }
}

/// A value of any type.
pub(super) fn any() -> Node {
    Node {
        int_or_string: true,
        ..Node::default()
    }
}

pub(super) fn list(items: Node) -> Node {
    Node {
        items: Some(Box::new(items)),
        ..of_type("array")
    }
}

pub(super) fn map(values: Node) -> Node {
    Node {
        additional_properties: Some(AdditionalProperties::Schema(Box::new(values))),
        ..of_type("object")
    }
}

pub(super) fn object<const N: usize>(properties: [(&str, Node); N]) -> Node {
    let properties = properties.map(|(name, node)| (name.to_owned(), node));
    Node {
        properties: properties.into(),
        ..of_type("object")
    }
}
