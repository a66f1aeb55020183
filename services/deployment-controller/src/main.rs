//! The `deployment-controller` binary.

use std::process::ExitCode;

use setpoint_host as host;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run(
        "deployment-controller",
        setpoint_deployment_controller::start,
    )
    .await
}
