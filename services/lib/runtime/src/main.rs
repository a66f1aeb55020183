//! The program that the runtimes run as shims and helpers in their tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    setpoint_runtime::program::run(&args).unwrap_or(ExitCode::FAILURE)
}
