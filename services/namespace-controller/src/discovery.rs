//! Discovery of the API servers that may have content of a namespace.

use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::condition::is_true;
use setpoint_proto::ApiError;
use setpoint_proto::apiregistration::ApiService;

/// Returns the API groups with versions whose servers do not answer, in their order. The gateway itself serves those
/// without a Service.
///
/// # Errors
/// If the APIServices cannot be read.
pub(crate) async fn undiscovered(client: &Client) -> Result<Vec<String>, ApiError> {
    let mut found = Vec::new();
    let visit = |one: ApiService| {
        if one.spec.service.is_some() && !is_true(&one.status.conditions, "Available") {
            found.push(format!("{}/{}", one.spec.group, one.spec.version));
        }
    };
    client.for_each(&ListOptions::default(), visit).await?;
    found.sort();
    Ok(found)
}
