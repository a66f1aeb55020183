//! The `replicaset-controller` binary.

use std::process::ExitCode;

use setpoint_replicaset_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
