//! The `deployment-controller` binary.

use std::process::ExitCode;

use setpoint_deployment_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
