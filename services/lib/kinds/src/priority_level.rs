//! The priority level of requests about a kind, for priority and fairness.

/// A priority level that a kind chooses for its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityLevel {
    /// Requests that keep a leader, or make one.
    LeaderElection,
    /// Requests that keep a node ready.
    NodeHigh,
}
