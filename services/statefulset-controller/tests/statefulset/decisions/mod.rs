//! Tests of plan and status of the statefulset-controller on a simulated cluster.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod claims;
mod cluster;
mod plan;
mod simulation;
mod status;
mod update;
