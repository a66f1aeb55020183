//! Tests of the agent's decisions about a Pod from outside of the crate, and of its program.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod plan;
mod program;
mod properties;
mod simulation;
