//! The node agent. The same binary is also the shim that supervises one container; see `subcommand`.

use std::process::ExitCode;

use setpoint_host as host;
use setpoint_node_agent::{start, subcommand};

fn main() -> ExitCode {
    // Checked before any thread exists: a shim must stay one small process without an async runtime.
    subcommand(std::env::args_os().skip(1)).unwrap_or_else(agent)
}

#[tokio::main(worker_threads = 2)]
async fn agent() -> ExitCode {
    host::run("node-agent", start).await
}
