//! Tests of plan and status of the cronjob-controller on a simulated cluster.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod cluster;
mod plan;
mod simulation;
mod status;
mod story;
mod ticks;
