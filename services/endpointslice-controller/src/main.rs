//! The `endpointslice-controller` binary.

use std::process::ExitCode;

use setpoint_endpointslice_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process_with("endpointslice")
}
