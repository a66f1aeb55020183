//! Schemas of kinds, by which the expressions of policies are type-checked.

use prost_reflect::{Kind as Type, MessageDescriptor};
use setpoint_codec::rules::{self, Field};
use setpoint_codec::{Kind, kinds};
use setpoint_schema::Node;

use super::environment::{any, list, map, object, of_type, text, time};

/// Returns the schema of a kind; `None` for a custom kind without one.
pub(super) fn of(kind: &Kind) -> Option<Node> {
    let mut node = match kind.is_custom() {
        true => {
            let definition = kind.definition();
            let mut node = definition.custom.as_ref()?.schema()?.root().clone();
            let metadata = kinds().by_kind("v1", "ConfigMap")?;
            let metadata = rules::message(metadata.message.full_name())?.field("metadata")?;
            let metadata = of_element(&metadata.element, &mut Vec::new());
            node.properties.insert("metadata".into(), metadata);
            node
        }
        false => of_message(&kind.message, &mut Vec::new()),
    };
    for name in ["apiVersion", "kind"] {
        node.properties.insert(name.into(), text());
    }
    Some(node)
}

/// Returns the schema of a message. `around` has the names of those that contain it: where one contains itself, nothing
/// is known.
fn of_message(message: &MessageDescriptor, around: &mut Vec<String>) -> Node {
    let name = message.full_name();
    if let Some(scalar) = scalar(name) {
        return scalar;
    }
    let is_known = !around.iter().any(|outer| outer == name);
    let Some(rules) = rules::message(name).filter(|_| is_known) else {
        return any();
    };
    around.push(name.to_owned());
    let mut node = object([]);
    for field in rules.fields() {
        let name = field.descriptor.json_name().to_owned();
        node.properties.insert(name, of_field(field, around));
    }
    around.pop();
    node
}

fn of_field(field: &Field, around: &mut Vec<String>) -> Node {
    let element = of_element(&field.element, around);
    match (field.descriptor.is_list(), field.descriptor.is_map()) {
        (true, _) => list(element),
        (_, true) => map(element),
        _ => element,
    }
}

fn of_element(element: &Type, around: &mut Vec<String>) -> Node {
    match element {
        Type::Message(message) => of_message(message, around),
        Type::Bool => of_type("boolean"),
        Type::Int32 | Type::Int64 => of_type("integer"),
        Type::Double => of_type("number"),
        Type::Bytes => Node {
            format: "byte".into(),
            ..text()
        },
        _ => text(),
    }
}

/// Returns the schema of a message that is not an object in JSON.
fn scalar(message: &str) -> Option<Node> {
    Some(match message {
        "k8s.meta.v1.Time" | "k8s.meta.v1.MicroTime" => time(),
        "k8s.meta.v1.Duration" | "k8s.meta.v1.Quantity" => text(),
        "k8s.meta.v1.FieldsV1" | "k8s.meta.v1.RawExtension" => object([]),
        "k8s.meta.v1.IntOrString"
        | "k8s.apiextensions.v1.JSON"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrArray"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrBool"
        | "k8s.apiextensions.v1.JSONSchemaPropsOrStringArray" => any(),
        "k8s.meta.v1.Verbs"
        | "k8s.authentication.v1.ExtraValue"
        | "k8s.authorization.v1.ExtraValue"
        | "k8s.certificates.v1.ExtraValue" => list(text()),
        _ => return None,
    })
}
