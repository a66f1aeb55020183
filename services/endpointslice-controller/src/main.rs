//! The `endpointslice-controller` binary.

use std::process::ExitCode;

use setpoint_endpointslice_controller::CONTROLLER;
use setpoint_host as host;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run(CONTROLLER.name, |host, settings| {
        CONTROLLER.start(host, settings)
    })
    .await
}
