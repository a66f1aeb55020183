//! The `replicaset-controller` binary.

use std::process::ExitCode;

use setpoint_host as host;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run(
        "replicaset-controller",
        setpoint_replicaset_controller::start,
    )
    .await
}
