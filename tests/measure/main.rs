//! Measures the cluster as a whole. Rates depend on the machine; ratios within one run, CPU and memory say more.

mod app;
mod cascade;
mod client;
mod failover;
mod idle;
mod informer;
mod load;
mod process;
mod report;
mod start;
mod tracing;
mod watch;
mod writes;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use report::Report;

/// Measures Setpoint on this machine.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// What to measure; everything when left out.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Where the figures go as JSON.
    #[arg(long, default_value = "target/bench.json")]
    output: PathBuf,
    /// Seconds for each rate.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds over which the idle cluster is watched.
    #[arg(long, default_value_t = 30.0)]
    idle: f64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Creates through the gateway against raw etcd.
    Writes,
    /// Deliveries to 1, 16 and 256 watchers.
    Watch,
    /// From one Deployment to N Pods Running.
    Cascade,
    /// What exporting every span costs.
    Tracing,
    /// Bytes per cached Pod.
    Informer,
    /// Memory and CPU of the idle cluster.
    Idle,
    /// Time until the gateway is ready.
    Start,
    /// Time without a leader's writes after the leader was stopped or killed.
    Failover,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let asked = |part: Part| options.parts.is_empty() || options.parts.contains(&part);
    let mut report = Report::default();
    if asked(Part::Start) {
        start::measure(&mut report).await?;
    }
    if asked(Part::Writes) {
        writes::measure(&mut report, options.seconds).await?;
    }
    if asked(Part::Watch) {
        watch::measure(&mut report, options.seconds).await?;
    }
    if asked(Part::Cascade) {
        cascade::measure(&mut report).await?;
    }
    if asked(Part::Tracing) {
        tracing::measure(&mut report, options.seconds).await?;
    }
    if asked(Part::Informer) {
        informer::measure(&mut report).await?;
    }
    if asked(Part::Idle) {
        idle::measure(&mut report, options.idle).await?;
    }
    if asked(Part::Failover) {
        failover::measure(&mut report).await?;
    }
    print!("{report}");
    report.write(&options.output)
}
