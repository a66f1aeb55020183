//! Finds a node for every Pod.

use std::process::ExitCode;

use setpoint_host as host;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run("scheduler", setpoint_scheduler::start).await
}
