//! Tests of plan and status, without a gateway.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod cluster;
mod placement;
mod plan;
mod simulation;
mod status;
mod story;
