//! Properties of the collector: objects with random owners, deleted in random ways, with a crash between any two
//! writes.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod cluster;
mod graph;
mod simulation;
mod tables;
