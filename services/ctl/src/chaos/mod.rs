//! `setpoint chaos`: breaks replicas under load, and reckons what that has cost.
//!
//! Bounded in count and time, on this machine only; whatever it broke is healed, and its load removed, however it ends.

mod account;
mod cluster;
mod compose;
mod fenced;
mod held;
mod here;
mod load;
mod local;
mod options;
mod report;
mod round;
mod witness;

use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use rand::SeedableRng;
use rand::rngs::StdRng;
use setpoint_controller::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::reach::Reach;
use cluster::Cluster;
use load::{Load, NAMESPACE};
use options::Fault;
pub use options::Options;
use report::{Row, table};
use round::Round;
use witness::Witness;

/// Plays the rounds; fails if anything was doubled, lost or late.
pub async fn chaos(reach: &Reach, options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(given) = reach.given() {
        here::ensure(given).await?;
    }
    let (mut cluster, reach) = Cluster::open(reach, options).await?;
    let gateway = reach.gateway()?;
    if cluster.replicas(&options.service).await?.is_empty() {
        bail!("no replica of {} runs", options.service);
    }
    let load = Load::new(&gateway, options.compose.is_none());
    let mut load = match options.fault {
        Fault::Delay => load.heavy(),
        _ => load,
    };
    let mut rows = Vec::new();
    let played = play(options, &gateway, &mut cluster, &mut load, &mut rows).await;
    // Both, whatever has failed.
    let healed = cluster.heal().await.context("a fault was not undone");
    let removed = load.remove().await;
    report(&rows, &load);
    played.and(healed).and(removed)?;
    match rows.iter().all(Row::is_clean) {
        true => Ok(ExitCode::SUCCESS),
        false => bail!("what must be 0 is not: LATE, TWICE and LOST in the table above"),
    }
}

/// All rounds, until the last, a failure or Ctrl-C.
async fn play(
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
        played = rounds(options, gateway, cluster, load, rows) => played,
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
        options.described()
    );
    let mut dice = StdRng::seed_from_u64(seed);
    load.prepare().await?;
    let mut witness = Witness::begin(gateway, NAMESPACE, &options.service).await;
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
            witness: &mut witness,
            dice: &mut dice,
        };
        let row = round.play(number).await?;
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
