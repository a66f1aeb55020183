//! Measures the cluster as a whole. Rates depend on the machine; ratios within one run, CPU and memory say more.

mod app;
mod cascade;
mod definitions;
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
    /// The parts to measure; all by default.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// File for the results as JSON.
    #[arg(long, default_value = "target/bench.json")]
    output: PathBuf,
    /// Seconds for each rate.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds for the measurement of the idle cluster.
    #[arg(long, default_value_t = 30.0)]
    idle: f64,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Creates through the gateway compared with raw etcd.
    Writes,
    /// Deliveries to 1, 16 and 256 watchers.
    Watch,
    /// Time from the creation of a Deployment until N Pods run.
    Cascade,
    /// The cost of exporting every span.
    Tracing,
    /// Bytes per cached Pod.
    Informer,
    /// 500 CustomResourceDefinitions: time, memory, discovery and OpenAPI.
    Definitions,
    /// Memory and CPU of the idle cluster.
    Idle,
    /// Time until the gateway is ready.
    Start,
    /// Time without writes after a leader was stopped or killed.
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
    if asked(Part::Definitions) {
        definitions::measure(&mut report).await?;
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
