//! Act: executes actions, and records Events about them.

use serde_json::json;
use setpoint_controller::{Client, Receipt, Recorder, events};
use setpoint_model::{Cidr, Target};
use setpoint_proto::ApiError;
use setpoint_proto::core::Node;

use crate::Action;

/// Sets the range of a Node that is still the one that was observed. The gateway refuses to change one that is set.
pub(crate) async fn assign(
    client: &Client,
    node: &Target,
    range: Cidr,
) -> Result<Receipt, ApiError> {
    let range = range.prefixed();
    let patch = json!({
        "metadata": {"uid": node.uid},
        "spec": {"podCIDR": range, "podCIDRs": [range]},
    });
    let patched = client.patch::<Node>(&node.key, "", patch).await;
    Receipt::unless_gone(patched.map(|patched| patched.receipt()))
}

/// Records an Event, with the reason and message of upstream.
pub(crate) fn record(events: &Recorder, action: &Action, result: &Result<Receipt, ApiError>) {
    let (node, reason) = match (action, result) {
        (Action::Report { node }, _) => (node, "CIDRNotAvailable"),
        (Action::Assign { node, .. }, Err(error)) if events::is_reported(error) => {
            (node, "CIDRAssignmentFailed")
        }
        _ => return,
    };
    let name = &node.key.name;
    let message = format!("Node {name} status is now: {reason}");
    events.normal(&events::reference_to_target::<Node>(node), reason, message);
}
