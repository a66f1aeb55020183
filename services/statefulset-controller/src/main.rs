//! The `statefulset-controller` binary.

use std::process::ExitCode;

use setpoint_host as host;
use setpoint_statefulset_controller::CONTROLLER;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run(CONTROLLER.name, |host, settings| {
        CONTROLLER.start(host, settings)
    })
    .await
}
