//! A view of a Node: who it is, and the addresses that it declares.

use std::net::IpAddr;

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_model::users::CONTROL_PLANE;
use setpoint_model::{Meta, condition};
use setpoint_proto::core::Node;

/// A Node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The IPs that it declares.
    pub ips: Vec<IpAddr>,
    /// The DNS names that it declares.
    pub names: Vec<String>,
    /// Whether it is a machine of the control plane, as an administrator says by [`CONTROL_PLANE`]: nodes cannot set
    /// that label themselves.
    pub is_control_plane: bool,
    /// The time at which its agent last reported that it is ready, if it is.
    pub ready: Option<Timestamp>,
}

impl View for NodeView {
    type Object = Node;

    fn of(object: Node) -> Self {
        let mut meta = Meta::of(&object.metadata);
        let is_control_plane = meta.labels.contains_key(CONTROL_PLANE);
        meta.labels.clear();
        meta.annotations.clear();
        let (mut ips, mut names) = (Vec::new(), Vec::new());
        for address in object.status.addresses {
            match address.r#type.as_str() {
                "InternalIP" | "ExternalIP" => ips.extend(address.address.parse::<IpAddr>()),
                "Hostname" | "InternalDNS" | "ExternalDNS" => names.push(address.address),
                _ => {}
            }
        }
        let mut conditions = object.status.conditions.iter();
        let ready = conditions.find(|one| one.r#type == "Ready" && one.status == condition::TRUE);
        Self {
            meta,
            ips,
            names,
            is_control_plane,
            ready: ready.and_then(|ready| ready.last_heartbeat_time.timestamp()),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl NodeView {
    /// Returns whether a user with this uid is the Node: users of certificates that name no uid may be.
    pub(crate) fn is(&self, uid: &str) -> bool {
        uid.is_empty() || self.meta.uid == uid
    }
}
