//! A soak: all controllers at once on simulated nodes, with random actions of a user and faults of all processes. At
//! the end all conditions are met, nothing is doubled or left over, caches equal etcd, and memory is flat.

#![allow(missing_docs, reason = "a program has no users of its items")]

mod api;
mod cache;
mod check;
mod faults;
mod history;
mod memory;
mod report;
mod run;
mod snapshot;
mod user;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Soaks a cluster of simulated nodes.
#[derive(Clone, Parser)]
#[command(version, bin_name = "tests/soak")]
pub struct Options {
    /// Seconds of actions and faults.
    #[arg(long, default_value_t = 3600)]
    seconds: u64,
    /// Number of simulated nodes.
    #[arg(long, default_value_t = 200)]
    nodes: usize,
    /// Number of gateways.
    #[arg(long, default_value_t = 2)]
    gateways: usize,
    /// Number of replicas of each controller and of the scheduler.
    #[arg(long, default_value_t = 2)]
    replicas: usize,
    /// The seed of actions and faults; by default the time, which is printed.
    #[arg(long)]
    seed: Option<u64>,
    /// Actions a second.
    #[arg(long, default_value_t = 2.0)]
    rate: f64,
    /// Seconds between two faults; 0 for none.
    #[arg(long, default_value_t = 10.0)]
    fault_interval: f64,
    /// Seconds after the last action within which all conditions must be met.
    #[arg(long, default_value_t = 300)]
    settle: u64,
    /// File for the report as JSON.
    #[arg(long, default_value = "target/soak.json")]
    output: PathBuf,
    /// Directory to keep the logs in.
    #[arg(long)]
    logs: Option<PathBuf>,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let report = run::run(&options).await?;
    print!("{report}");
    report.write(&options.output)?;
    Ok(ExitCode::from(u8::from(!report.problems.is_empty())))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Options;

    #[test]
    fn help_txt_is_the_help_of_this_program() {
        let help = Options::command().render_help().to_string();
        let advice = "write it anew with the program's --help";
        assert_eq!(include_str!("help.txt"), help, "{advice}");
    }
}
