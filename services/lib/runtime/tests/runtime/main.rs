//! The container runtimes: the contract of all of them, and what only one of them does.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod contract;
mod cri;
mod docker;
mod process;
mod simulated;

use setpoint_runtime::contract::Machine;

/// The machine of the tests.
const MACHINE: Machine = Machine {
    free_port: setpoint_testkit::free_port,
    processes_with: setpoint_testkit::processes_with,
};
