//! The cached form of a Pod.

use prost::Message as _;
use setpoint_controller::View;
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_model::Meta;
use setpoint_model::pod::is_terminal;
use setpoint_proto::core::Pod;

/// The source of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The API.
    Api,
    /// The API, as the object that shows a static Pod. It is not run.
    Mirror,
    /// A manifest of the node: a static Pod.
    Manifest,
}

/// A Pod, kept in its protobuf encoding to save memory.
pub struct PodView {
    meta: Meta,
    /// The source that it is from.
    pub source: Source,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Name of its node; empty if it is not bound.
    pub node: String,
    /// Whether the Pod is terminal.
    pub ended: bool,
    encoded: Vec<u8>,
}

impl PodView {
    /// Returns the view of a static Pod.
    pub fn of_manifest(pod: Pod) -> Self {
        Self {
            source: Source::Manifest,
            ..Self::of(pod)
        }
    }

    /// Returns whether it is a static Pod. Upstream counts these as critical, whatever their priority.
    pub fn is_static(&self) -> bool {
        self.source == Source::Manifest
    }

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
            source: match pod.metadata.annotations.contains_key(MIRROR) {
                true => Source::Mirror,
                false => Source::Api,
            },
            is_deleting: pod.metadata.deletion_timestamp.is_some(),
            ended: is_terminal(&pod),
            node: pod.spec.node_name.clone(),
            encoded: pod.encode_to_vec(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
