//! Pods that their node ends: because it is short of a resource, or because it shuts down.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

/// The end of a Pod that its node has decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The reason in the status of the Pod.
    pub reason: &'static str,
    /// The message in the status of the Pod.
    pub message: String,
    /// Maximum time that its containers have to stop.
    pub grace: Duration,
    /// Whether the Pod ends for the sake of others, and not for what it did itself.
    pub disrupts: bool,
    /// The time of the decision.
    pub since: Timestamp,
}

/// The Pods that are to end, by uid. An agent that restarts has forgotten them, and decides anew.
#[derive(Default)]
pub struct Endings(Mutex<HashMap<String, Ending>>);

impl Endings {
    /// Ends a Pod, unless that was decided before.
    pub fn add(&self, uid: &str, ending: Ending) {
        self.0.lock().entry(uid.to_owned()).or_insert(ending);
    }

    /// Returns the end of a Pod that was decided on.
    pub fn get(&self, uid: &str) -> Option<Ending> {
        self.0.lock().get(uid).cloned()
    }

    /// Forgets a Pod that has ended.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}
