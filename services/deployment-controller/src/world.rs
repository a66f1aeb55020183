//! Observe: takes a snapshot of a Deployment and its ReplicaSets.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::Key;

use crate::{DeploymentView, ReplicaSetView};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Deployment.
    pub deployment: Arc<DeploymentView>,
    /// The ReplicaSets that it owns, and orphans of its namespace, in any order.
    pub sets: Vec<Arc<ReplicaSetView>>,
    /// The ReplicaSet with the name that the set of the current template has or would get; it may belong to another
    /// owner.
    pub name_conflict: Option<Arc<ReplicaSetView>>,
    /// The current time.
    pub now: Timestamp,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the Deployment is gone.
    pub(crate) fn observe(
        deployments: &Reader<DeploymentView>,
        sets: &Reader<ReplicaSetView>,
        key: &Key,
        inputs: Inputs,
    ) -> Option<Self> {
        let deployment = deployments.get(key)?;
        let name = Key::new(&key.namespace, deployment.set_name());
        Some(Self {
            sets: sets.candidates(&deployment.meta),
            name_conflict: sets.get(&name),
            deployment,
            now: inputs.now,
        })
    }
}
