//! The container runtimes: the contract of all of them, and what only one of them does.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod contract;
mod docker;
mod process;
mod support;
