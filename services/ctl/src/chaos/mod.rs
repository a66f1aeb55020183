//! `setpoint chaos`: injects faults into replicas under load, and measures their effects.
//!
//! It works on clusters of this machine only. Faults are undone and the load is removed even if it fails or is
//! interrupted.

mod cluster;
mod compose;
mod fenced;
mod load;
mod local;
mod loopback_guard;
mod observer;
mod options;
mod relay_backlog;
mod report;
mod report_data;
mod round;

use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use rand::SeedableRng;
use rand::rngs::StdRng;
use setpoint_controller::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::connection::Connection;
use cluster::Cluster;
use load::{Load, NAMESPACE};
use observer::Observer;
use options::Fault;
pub use options::Options;
use report::{Row, table};
use round::Round;

/// Runs all rounds and prints the report.
///
/// # Errors
/// A round failed, or the report counts a late write, an extra Pod or a lost write.
pub async fn chaos(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    if connection.is_given() {
        loopback_guard::require_local(&connection.addresses()?).await?;
    }
    let (mut cluster, connection) = Cluster::open(connection, options).await?;
    let gateway = connection.gateway()?;
    if cluster.replicas(&options.service).await?.is_empty() {
        bail!("no replica of {} runs", options.service);
    }
    let load = Load::new(&gateway).await?;
    let mut load = match options.fault {
        Fault::Delay => load.heavy(),
        _ => load,
    };
    let mut rows = Vec::new();
    let outcome = run(options, &gateway, &mut cluster, &mut load, &mut rows).await;
    // Clean up even if a round has failed.
    let healed = cluster.heal().await.context("cannot undo the fault");
    let removed = load.remove().await;
    report(&rows, &load);
    outcome.and(healed).and(removed)?;
    match rows.iter().all(Row::is_clean) {
        true => Ok(ExitCode::SUCCESS),
        false => bail!("LATE, EXTRA and LOST must be 0 in the table above"),
    }
}

/// Runs all rounds; stops at the first failure or at Ctrl-C.
async fn run(
    options: &Options,
    gateway: &Client,
    cluster: &mut Cluster,
    load: &mut Load,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    tokio::select! {
        outcome = rounds(options, gateway, cluster, load, rows) => outcome,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("interrupted")),
    }
}

async fn rounds(
    options: &Options,
    gateway: &Client,
    cluster: &mut Cluster,
    load: &mut Load,
    rows: &mut Vec<Row>,
) -> anyhow::Result<()> {
    let seed = options
        .seed
        .unwrap_or_else(|| rand::random_range(0..1_000_000));
    println!(
        "Chaos: {}, under load in the namespace {NAMESPACE}; seed {seed}",
        options.description()
    );
    let mut rng = StdRng::seed_from_u64(seed);
    load.prepare().await?;
    let mut observer = Observer::start(gateway, NAMESPACE, &options.service).await;
    let begin = Instant::now();
    for number in 1..=options.rounds() {
        if options.time.is_some_and(|time| begin.elapsed() >= time) {
            break;
        }
        let mut round = Round {
            options,
            gateway,
            cluster,
            load,
            observer: &mut observer,
            rng: &mut rng,
        };
        let row = round.run(number).await?;
        println!("  {}", row.line());
        rows.push(row);
    }
    Ok(())
}

fn report(rows: &[Row], load: &Load) {
    if !rows.is_empty() {
        let acknowledged = load.acknowledged();
        println!(
            "\n{}\n{acknowledged} writes of the load were acknowledged.",
            table(rows)
        );
    }
}
