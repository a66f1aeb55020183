//! The computed table cells of Nodes.

use serde_json::Value;
use setpoint_proto::core::Node;

/// Labels that give a node its roles: one key per role, or one key whose value is the role.
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

/// Returns the cell of a computed column.
pub(super) fn cell(node: &Node, column: &str) -> Option<Value> {
    let info = &node.status.node_info;
    Some(match column {
        "Status" => status(node).into(),
        "Roles" => roles(node).into(),
        "Internal-IP" => address(node, "InternalIP").into(),
        "External-IP" => address(node, "ExternalIP").into(),
        "OS-Image" => known(&info.os_image).into(),
        "Kernel-Version" => known(&info.kernel_version).into(),
        "Container-Runtime" => known(&info.container_runtime_version).into(),
        _ => return None,
    })
}

fn status(node: &Node) -> String {
    let ready = node.status.conditions.iter().find(|c| c.r#type == "Ready");
    let word = match ready.map(|condition| condition.status.as_str()) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    };
    match node.spec.unschedulable {
        true => format!("{word},SchedulingDisabled"),
        false => word.into(),
    }
}

fn roles(node: &Node) -> String {
    let labels = node.metadata.labels.iter();
    let mut roles: Vec<_> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            None if key == ROLE => Some(value.as_str()),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    match roles.is_empty() {
        true => "<none>".into(),
        false => roles.join(","),
    }
}

fn address<'a>(node: &'a Node, kind: &str) -> &'a str {
    let mut addresses = node.status.addresses.iter();
    let found = addresses.find(|address| address.r#type == kind);
    found.map_or("<none>", |address| &address.address)
}

fn known(text: &str) -> &str {
    if text.is_empty() { "<unknown>" } else { text }
}
