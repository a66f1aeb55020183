//! The gateway's process.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    setpoint_host::run("gateway", setpoint_gateway::start).await
}
