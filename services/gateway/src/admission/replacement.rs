//! Replaces the object of a request by what a webhook or a policy has made of it.

use serde_json::Value;
use setpoint_codec::Object;
use setpoint_kinds as kinds;

use super::request::{back_in_form, document};
use crate::admission::Admission;

/// Replaces an object by one that is in the version that was `seen`, and sets its defaults. Returns whether it has
/// changed.
///
/// # Errors
/// If it cannot be converted to the version of the object.
pub(super) async fn replace(
    admission: &Admission,
    object: &mut Box<dyn Object>,
    by: Box<dyn Object>,
    seen: &Value,
) -> Result<bool, String> {
    let changed = document(&*by) != *seen;
    let form = object.kind();
    let by = back_in_form(admission, by, form).await;
    *object = by.map_err(|error| error.message)?;
    if let Some(rules) = kinds::find(form) {
        rules.fill_defaults(&mut **object);
    }
    Ok(changed)
}
