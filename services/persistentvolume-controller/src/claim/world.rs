//! World: everything that the decision about one claim depends on.

use std::sync::Arc;

use setpoint_workload::PodView;

use super::ClaimView;
use crate::volume::VolumeView;
use crate::{ClassView, NodeView};

/// Everything that the decision about one claim depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The claim.
    pub claim: Arc<ClaimView>,
    /// The volume that it names.
    pub named: Option<Arc<VolumeView>>,
    /// Volumes of its class without a reservation, and those that are reserved for its name; only while it is not
    /// bound.
    pub volumes: Vec<Arc<VolumeView>>,
    /// Its class.
    pub class: Option<Arc<ClassView>>,
    /// The name of the default class.
    pub default_class: Option<String>,
    /// The node for which its volume is provisioned.
    pub node: Option<Arc<NodeView>>,
    /// The Pods that use it.
    pub pods: Vec<Arc<PodView>>,
}

impl World {
    /// Returns whether a Pod with a node uses the claim. Others are not started while it is being deleted.
    pub fn is_used(&self) -> bool {
        self.pods.iter().any(|pod| pod.node.is_some())
    }

    /// Returns whether the scheduler chooses the volume, or the node for which it is provisioned, for the first Pod of
    /// the claim.
    pub fn is_delayed(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.is_delayed)
    }

    /// Returns whether the claim waits for its first Pod, whose node is not known yet.
    pub fn waits_for_pod(&self) -> bool {
        self.is_delayed() && self.claim.claim.selected_node().is_none()
    }
}
