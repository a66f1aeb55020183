//! The `daemonset-controller` binary.

use std::process::ExitCode;

use setpoint_daemonset_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
