//! The references in a document of OpenAPI v2 (upstream: the walkers of kube-openapi).

use serde_json::{Map, Value};

/// A function that reads or changes a reference.
pub(super) type Visit<'v> = &'v mut dyn FnMut(&mut String);

const OPERATIONS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Visits the references in the operations of a path.
pub(super) fn in_path(path: &mut Value, visit: Visit<'_>) {
    elements(path.get_mut("parameters")).for_each(|one| in_parameter(one, visit));
    for operation in OPERATIONS {
        let Some(operation) = path.get_mut(operation) else {
            continue;
        };
        elements(operation.get_mut("parameters")).for_each(|one| in_parameter(one, visit));
        for response in values(operation.get_mut("responses")) {
            of(response, visit);
            response
                .get_mut("schema")
                .into_iter()
                .for_each(|schema| in_schema(schema, visit));
        }
    }
}

/// Visits the references in a parameter.
pub(super) fn in_parameter(parameter: &mut Value, visit: Visit<'_>) {
    of(parameter, visit);
    let schema = parameter.get_mut("schema").into_iter();
    schema.for_each(|schema| in_schema(schema, visit));
}

/// Visits the references in a schema.
pub(super) fn in_schema(schema: &mut Value, visit: Visit<'_>) {
    of(schema, visit);
    for name in ["properties", "patternProperties", "definitions"] {
        values(schema.get_mut(name)).for_each(|schema| in_schema(schema, visit));
    }
    for name in ["allOf", "anyOf", "oneOf", "items"] {
        elements(schema.get_mut(name)).for_each(|schema| in_schema(schema, visit));
    }
    for name in ["items", "additionalProperties", "additionalItems", "not"] {
        let schema = schema.get_mut(name).into_iter();
        schema.for_each(|schema| in_schema(schema, visit));
    }
}

fn of(object: &mut Value, visit: Visit<'_>) {
    if let Some(Value::String(reference)) = object.get_mut("$ref") {
        visit(reference);
    }
}

fn values(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    let object = object.and_then(Value::as_object_mut);
    object.into_iter().flat_map(Map::values_mut)
}

fn elements(list: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    list.and_then(Value::as_array_mut).into_iter().flatten()
}
