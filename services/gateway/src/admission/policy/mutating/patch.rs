//! The patch that an expression makes, applied to an object.

use serde_json::Value;
use setpoint_cel::{Error, Evaluation};
use setpoint_codec::{Kind, Object, fields, patch, strict};
use setpoint_kinds::expressions::{Mutations, Patch, PatchType};
use setpoint_proto::ApiError;

use crate::admission::conditions::{Inputs, OUT_OF_BUDGET};
use crate::admission::internal;

/// The cost that an expression may have with the variables that it uses, as upstream's.
const BUDGET: u64 = 10_000_000;

/// The reason for which a patch is not applied.
#[derive(Debug)]
pub(super) enum Failure {
    /// The failure policy decides.
    Policy(String),
    /// The request fails whatever the failure policy is.
    Request(ApiError),
}

/// Evaluates an expression, and applies the patch to the object of the request. `None` if the test of a JSON patch
/// fails.
///
/// # Errors
/// If the expression has no value, or the patch cannot be applied.
pub(super) fn patched(
    patch: &Patch,
    of: &Mutations,
    inputs: &Inputs<'_>,
    kind: &'static Kind,
) -> Result<Option<Box<dyn Object>>, Failure> {
    let made = evaluate(patch, of, inputs).map_err(Failure::Policy)?;
    let live = &inputs.values.object;
    match patch.r#type {
        PatchType::ApplyConfiguration => applied(kind, live, made).map(Some),
        PatchType::JsonPatch => json_patched(kind, live, made),
    }
}

fn evaluate(patch: &Patch, of: &Mutations, inputs: &Inputs<'_>) -> Result<Value, String> {
    let expression = patch.expression.as_ref().map_err(Clone::clone)?;
    let inputs = inputs.of(inputs.namespace);
    let mut evaluation = Evaluation::new(&of.variables, &inputs, BUDGET);
    evaluation.patch(expression).map_err(|error| match error {
        Error::Failed(error) => error,
        Error::OutOfBudget => OUT_OF_BUDGET.to_owned(),
    })
}

fn applied(
    kind: &'static Kind,
    live: &Value,
    mut config: Value,
) -> Result<Box<dyn Object>, Failure> {
    if let (Value::Object(fields), Value::Object(live)) = (&mut config, live) {
        for name in ["apiVersion", "kind"] {
            let value = live.get(name).cloned();
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    let broken = |error: String| Failure::Policy(format!("error applying patch: {error}"));
    let merged = fields::merge_unowned(kind, live, &config).map_err(broken)?;
    let object = kind.from_json(merged.to_string().as_bytes());
    object.map_err(|error| Failure::Policy(error.to_string()))
}

/// Applies a JSON patch. The object must have known fields only.
fn json_patched(
    kind: &'static Kind,
    live: &Value,
    operations: Value,
) -> Result<Option<Box<dyn Object>>, Failure> {
    let patched = match patch::json(kind, live.clone(), operations) {
        Ok(patched) => patched.to_string(),
        Err(patch::Error::TestFailed(_)) => return Ok(None),
        Err(error) => return Err(Failure::Policy(format!("JSON Patch: {error}"))),
    };
    let unfit = |error: String| Failure::Request(internal(&error));
    let unknown = strict::unknown_fields(kind, patched.as_bytes());
    if !unknown.is_empty() {
        return Err(unfit(format!(
            "strict decoding error: {}",
            unknown.join(", ")
        )));
    }
    let object = kind.from_json(patched.as_bytes());
    object.map(Some).map_err(|error| unfit(error.to_string()))
}
