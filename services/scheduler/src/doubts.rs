//! Bindings whose outcome is unknown: sent, but never answered.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_machinery::Reader;
use setpoint_model::Key;

use crate::pod::PodView;

/// A binding that timed out may still be committed, so its Pod counts as placed until a later answer,
/// or the cache, says where it really is.
#[derive(Debug, Default)]
pub struct Doubts {
    bindings: Mutex<HashMap<Key, (String, Arc<PodView>)>>,
}

impl Doubts {
    /// Nobody answered for this binding.
    pub fn add(&self, pod: &Arc<PodView>, node: &str) {
        let key = pod.meta.key.clone();
        self.bindings
            .lock()
            .insert(key, (node.to_owned(), pod.clone()));
    }

    /// It is now known how the Pod stands.
    pub fn resolve(&self, pod: &PodView) {
        self.bindings.lock().remove(&pod.meta.key);
    }

    /// The doubtful bindings, less those that the cache has seen through.
    pub fn unresolved(&self, pods: &Reader<PodView>) -> Vec<(String, Arc<PodView>)> {
        let mut bindings = self.bindings.lock();
        bindings.retain(|key, (_, doubted)| {
            let pod = pods.get(key);
            pod.is_some_and(|pod| pod.meta.uid == doubted.meta.uid && pod.node.is_none())
        });
        bindings.values().cloned().collect()
    }
}
