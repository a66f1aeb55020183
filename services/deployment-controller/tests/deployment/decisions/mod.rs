//! Tests of plan and status of the deployment-controller on a simulated cluster.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod cluster;
mod collision;
mod numbers;
mod plan;
mod scaling;
mod status;
