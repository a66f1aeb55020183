//! The `horizontalpodautoscaler-controller` binary.

use std::process::ExitCode;

use setpoint_horizontalpodautoscaler_controller::CONTROLLER;

fn main() -> ExitCode {
    CONTROLLER.run_process_with("autoscaling")
}
