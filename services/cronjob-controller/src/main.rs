//! The `cronjob-controller` binary.

use std::process::ExitCode;

use setpoint_cronjob_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process()
}
