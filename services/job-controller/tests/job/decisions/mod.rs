//! Tests of plan and status of the job-controller on a simulated cluster.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod cluster;
mod ending;
mod indexed;
mod pods;
mod scaling;
mod simulation;
mod story;
mod tracking;
