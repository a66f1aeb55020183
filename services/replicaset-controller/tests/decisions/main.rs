//! What the replicaset-controller decides, on a cluster that is only data.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic, and so may what it is made of"
)]

mod backoff;
mod cluster;
mod plan;
mod status;
