//! Observe: everything that a decision about one Deployment may look at.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Inputs, Reader};
use setpoint_model::Key;

use crate::{Deployment, Set};

/// One Deployment and its surroundings at one moment.
#[derive(Clone, Debug)]
pub struct World {
    /// What is wanted.
    pub deployment: Arc<Deployment>,
    /// The ReplicaSets that it owns, and orphans of its namespace, in any order.
    pub sets: Vec<Arc<Set>>,
    /// Whoever has the name that the set of the current template would get.
    pub namesake: Option<Arc<Set>>,
    /// The time.
    pub now: Timestamp,
}

impl World {
    /// Returns a snapshot of the caches; `None` if the Deployment is gone.
    pub(crate) fn observe(
        deployments: &Reader<Deployment>,
        sets: &Reader<Set>,
        key: &Key,
        inputs: Inputs,
    ) -> Option<Self> {
        let deployment = deployments.get(key)?;
        let mut candidates = sets.owned_by(&deployment.meta.uid);
        candidates.extend(sets.tagged(&key.namespace));
        let namesake = Key::new(&key.namespace, deployment.set_name());
        Some(Self {
            namesake: sets.get(&namesake),
            deployment,
            sets: candidates,
            now: inputs.now,
        })
    }
}
