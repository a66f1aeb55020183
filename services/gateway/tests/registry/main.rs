//! The registry's rules, verb by verb, over a store in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bind;
mod collector;
mod contention;
mod create;
mod delete;
mod differences;
mod house;
mod leases;
mod list;
mod panics;
mod patch;
mod replicas;
mod scale;
mod status;
mod update;
mod validation;
mod world;
