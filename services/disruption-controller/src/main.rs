//! The `disruption-controller` binary.

use std::process::ExitCode;

use setpoint_disruption_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
