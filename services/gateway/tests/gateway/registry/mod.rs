//! Tests of the registry over a store in memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod background;
mod binding;
mod cache_differences;
mod claims;
mod concurrent_gateways;
mod contention;
mod create;
mod default_classes;
mod definitions;
mod delete;
mod eviction;
mod fencing;
mod gateway;
mod list;
mod lost_answers;
mod panics;
mod patch;
mod plane;
mod quota;
mod scale;
mod status;
mod subresources;
mod update;
mod validation;
mod why;
