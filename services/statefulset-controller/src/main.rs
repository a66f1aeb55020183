//! The `statefulset-controller` binary.

use std::process::ExitCode;

use setpoint_statefulset_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
