//! Schemas and objects, with the results that upstream has for them.

mod defaults;
mod definition;
mod limits;
mod properties;
mod prune;
mod ratchet;
mod rules;
mod validate;

use serde_json::Value;
use setpoint_schema::Schema;

fn compile(json: &Value) -> Schema {
    Schema::compile(json).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// Returns the schema of an object with one field, `x`.
fn of_x(x: &Value) -> Schema {
    compile(&serde_json::json!({"type": "object", "properties": {"x": x}}))
}

/// Returns the violations of an object as lines.
fn lines(schema: &Schema, new: &Value, old: Option<&Value>) -> Vec<String> {
    let found = schema.validate(new, old);
    found.iter().map(ToString::to_string).collect()
}
