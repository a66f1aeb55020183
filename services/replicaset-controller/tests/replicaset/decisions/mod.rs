//! Tests of plan and status of the replicaset-controller on a simulated cluster.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod backoff;
mod cluster;
mod plan;
mod replication;
mod status;
