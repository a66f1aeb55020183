//! Observe: everything that a decision about one Deployment may look at.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_machinery::{Reader, Recorder};
use setpoint_model::Key;
use setpoint_proto::{Resource, apps};

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

/// The controller: what it looks at, and whom it tells.
pub struct Deployments {
    deployments: Reader<Deployment>,
    sets: Reader<Set>,
    pub(crate) events: Recorder,
}

impl Deployments {
    /// A controller that looks at these caches.
    pub fn new(deployments: Reader<Deployment>, sets: Reader<Set>, events: Recorder) -> Self {
        Self {
            deployments,
            sets,
            events,
        }
    }

    /// Finds the Deployments that a ReplicaSet concerns: its owner, or for an orphan all that select it.
    pub fn keepers(&self) -> impl Fn(&Set) -> Vec<Key> + Send + Sync + 'static + use<> {
        let deployments = self.deployments.clone();
        move |set| {
            let namespace = &set.meta.key.namespace;
            match &set.meta.owner {
                Some(owner) if owner.kind == apps::Deployment::KIND => {
                    vec![Key::new(namespace, &owner.name)]
                }
                Some(_) => Vec::new(),
                None => {
                    let mut keepers = deployments.in_namespace(namespace);
                    keepers.retain(|deployment| deployment.selector.matches(&set.meta.labels));
                    keepers
                        .iter()
                        .map(|deployment| deployment.meta.key.clone())
                        .collect()
                }
            }
        }
    }

    pub(crate) fn look_at(&self, key: &Key) -> Option<World> {
        let deployment = self.deployments.get(key)?;
        let mut sets = self.sets.owned_by(&deployment.meta.uid);
        sets.extend(self.sets.tagged(&key.namespace));
        let namesake = Key::new(&key.namespace, deployment.set_name());
        Some(World {
            namesake: self.sets.get(&namesake),
            deployment,
            sets,
            now: Timestamp::now(),
        })
    }
}
