//! The `setpoint` command.

use std::process::ExitCode;

use clap::Parser;
use setpoint_ctl::Cli;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    Cli::parse().run().await.unwrap_or_else(|error| {
        eprintln!("setpoint: {error:#}");
        ExitCode::FAILURE
    })
}
