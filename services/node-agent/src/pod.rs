//! What the agent keeps of each Pod: where it is, and the rest encoded until it is looked at.

use prost::Message as _;
use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_proto::core::Pod;

/// A Pod as it came, in as few bytes as it came in.
pub struct PodView {
    meta: Meta,
    /// The node that it is bound to; empty for none.
    pub node: String,
    encoded: Vec<u8>,
}

impl PodView {
    /// The whole Pod.
    pub fn pod(&self) -> Pod {
        Pod::decode(self.encoded.as_slice()).expect("it was encoded here")
    }
}

impl View for PodView {
    type Object = Pod;

    fn of(mut pod: Pod) -> Self {
        pod.metadata.managed_fields.clear();
        Self {
            meta: Meta::of(&pod.metadata),
            node: pod.spec.node_name.clone(),
            encoded: pod.encode_to_vec(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
