//! The cached form of a Pod.

use prost::Message as _;
use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::pod::is_terminal;
use setpoint_proto::core::Pod;

/// A Pod, kept in its protobuf encoding to save memory.
pub struct PodView {
    meta: Meta,
    /// Name of its node; empty if it is not bound.
    pub node: String,
    /// Whether the Pod is terminal.
    pub ended: bool,
    encoded: Vec<u8>,
}

impl PodView {
    /// Decodes the Pod.
    pub fn pod(&self) -> Pod {
        Pod::decode(self.encoded.as_slice()).expect("encoded by `PodView::of`")
    }
}

impl View for PodView {
    type Object = Pod;

    fn of(mut pod: Pod) -> Self {
        pod.metadata.managed_fields.clear();
        Self {
            meta: Meta::of(&pod.metadata),
            ended: is_terminal(&pod),
            node: pod.spec.node_name.clone(),
            encoded: pod.encode_to_vec(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
