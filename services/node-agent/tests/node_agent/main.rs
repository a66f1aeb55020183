//! What the agent decides about a Pod, seen from outside of the crate, and its program.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod plan;
mod program;
mod properties;
mod simulation;
