//! The types of the variables of expressions.

use setpoint_cel::{AdditionalProperties, Node};

pub(crate) fn text() -> Node {
    of_type("string")
}

pub(crate) fn list(items: Node) -> Node {
    Node {
        items: Some(Box::new(items)),
        ..of_type("array")
    }
}

pub(crate) fn map(values: Node) -> Node {
    Node {
        additional_properties: Some(AdditionalProperties::Schema(Box::new(values))),
        ..of_type("object")
    }
}

pub(crate) fn object<const N: usize>(fields: [(&str, Node); N]) -> Node {
    let fields = fields.map(|(name, node)| (name.to_owned(), node));
    Node {
        properties: fields.into(),
        ..of_type("object")
    }
}

fn of_type(name: &str) -> Node {
    Node {
        schema_type: name.to_owned(),
        ..Node::default()
    }
}
