//! Runs the Pods that are bound to its nodes; and, run again beside each container, watches over it.

use std::process::ExitCode;

use setpoint_host as host;
use setpoint_node_agent::{start, subcommand};

fn main() -> ExitCode {
    // Before any thread: a shim is one process of a few pages, not an async runtime.
    subcommand(std::env::args_os().skip(1)).unwrap_or_else(agent)
}

#[tokio::main(worker_threads = 2)]
async fn agent() -> ExitCode {
    host::run("node-agent", start).await
}
