//! The policy that is in force, and the back ends that keep what it records.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::matching::Subject;
use crate::metrics;
use crate::policy::{Decision, Policy};
use crate::sink::Sink;

/// Decides which requests are recorded, and has the back ends.
pub struct Auditor {
    policy: RwLock<Arc<Policy>>,
    sink: Arc<Sink>,
}

impl Auditor {
    /// Returns an auditor with this policy.
    pub fn new(policy: Policy, sink: Sink) -> Self {
        metrics::register();
        Self {
            policy: RwLock::new(Arc::new(policy)),
            sink: Arc::new(sink),
        }
    }

    /// Puts another policy in force. Requests that have begun keep their level.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write() = Arc::new(policy);
    }

    /// Decides about a request that asks for one thing or for several, and counts its level: the one that records most.
    pub fn decide(&self, asked: &[Subject<'_>]) -> Decision {
        let policy = self.policy.read().clone();
        let decisions = asked.iter().map(|one| policy.decide(one));
        let decision = decisions.max_by_key(|decision| decision.level);
        let decision = decision.unwrap_or_default();
        metrics::level(decision.level);
        decision
    }

    /// Returns the back ends.
    pub const fn sink(&self) -> &Arc<Sink> {
        &self.sink
    }
}
