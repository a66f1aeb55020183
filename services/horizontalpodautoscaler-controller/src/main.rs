//! The `horizontalpodautoscaler-controller` binary.

use std::process::ExitCode;

use setpoint_horizontalpodautoscaler_controller::{CONTROLLER, start};
use setpoint_host as host;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run(CONTROLLER.name, start).await
}
