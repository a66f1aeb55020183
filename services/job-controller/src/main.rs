//! The `job-controller` binary.

use std::process::ExitCode;

use setpoint_job_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
