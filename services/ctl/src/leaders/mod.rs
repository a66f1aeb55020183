//! `setpoint leaders`: shows the leader and the standbys of each service, and the age of their Leases.

mod leadership;
mod live;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{Timestamp, Zoned};
use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::Key;
use setpoint_model::replicas;
use setpoint_proto::coordination::Lease;
use setpoint_proto::{Reason, Resource as _};
use tokio::signal::ctrl_c;
use tokio::time::{MissedTickBehavior, interval};

use crate::connection::Connection;
use crate::style::Style;
pub use leadership::Leadership;
use leadership::leaderships;
use live::{Gaps, Live};
use table::{line, table};

/// Interval at which the ages on a terminal are updated.
const REDRAW: Duration = Duration::from_millis(500);

/// The options of `setpoint leaders`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Show every change, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table; with --watch and without a terminal, one line per change
    Table,
    /// A JSON array; with --watch, one per change, on one line
    Json,
}

/// Prints the leaderships once, or at every change.
pub async fn leaders(connection: &Connection, options: &Options) -> anyhow::Result<ExitCode> {
    let gateway = connection.gateway()?;
    // Also before a watch, which would wait for a gateway forever.
    let found = fetch(&gateway).await?;
    match options.watch {
        false => print(&found, options.output)?,
        true => tokio::select! {
            shown = watch(&gateway, options.output) => shown?,
            _ = ctrl_c() => {}
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the current leadership of every service.
pub async fn fetch(gateway: &Client) -> anyhow::Result<Vec<Leadership>> {
    let within = |namespace: &str| ListOptions {
        namespace: namespace.to_owned(),
        ..ListOptions::default()
    };
    let leases = gateway
        .list::<Lease>(&within(replicas::SYSTEM_NAMESPACE))
        .await?
        .items;
    let replicas = gateway.list::<Lease>(&within(replicas::NAMESPACE)).await?;
    let replicas: Vec<_> = replicas.items.iter().collect();
    let mut terms = Vec::new();
    for lease in &leases {
        terms.push((lease, term(gateway, lease).await?));
    }
    Ok(leaderships(terms, &replicas, Timestamp::now()))
}

/// Returns the term of a Lease, which the cause of its last write contains.
async fn term(gateway: &Client, lease: &Lease) -> anyhow::Result<u64> {
    let key = Key::of(&lease.metadata);
    let term = match gateway.object(Lease::RESOURCE, &key).await {
        Ok(object) => object.cause.and_then(|cause| cause.lease_term),
        Err(error) if error.reason == Reason::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    Ok(term.unwrap_or_default())
}

fn print(leaderships: &[Leadership], format: Format) -> anyhow::Result<()> {
    match format {
        Format::Table => print!("{}", table(leaderships)),
        Format::Json => println!("{}", serde_json::to_string_pretty(leaderships)?),
    }
    Ok(())
}

async fn watch(gateway: &Client, format: Format) -> anyhow::Result<()> {
    let live = Live::begin(gateway).await;
    match format {
        Format::Table if Style::stdout().can_redraw() => redraw(live).await,
        Format::Table => follow(live, print_lines).await,
        Format::Json => {
            follow(live, |_, now, _| {
                println!("{}", serde_json::to_string(now)?);
                Ok(())
            })
            .await
        }
    }
}

/// Redraws the table in place at every change and every [`REDRAW`].
async fn redraw(mut live: Live) -> anyhow::Result<()> {
    let mut tick = interval(REDRAW);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut height = 0;
    loop {
        let text = table(&live.leaderships());
        let back = match height {
            0 => String::new(),
            height => format!("\x1b[{height}A\x1b[J"),
        };
        let mut out = io::stdout().lock();
        write!(out, "{back}{text}")?;
        out.flush()?;
        drop(out);
        height = text.lines().count();
        tokio::select! {
            () = live.changed() => {}
            _ = tick.tick() => {}
        }
    }
}

/// Calls `show` with the old and the new leaderships whenever more than their ages has changed.
async fn follow(
    mut live: Live,
    show: impl Fn(&[Leadership], &[Leadership], &Gaps) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut shown: Vec<Leadership> = Vec::new();
    loop {
        let now = live.leaderships();
        let same = now.len() == shown.len() && now.iter().zip(&shown).all(|(a, b)| a.same_state(b));
        if !same {
            show(&shown, &now, &live.gaps())?;
            shown = now;
        }
        live.changed().await;
    }
}

fn print_lines(shown: &[Leadership], now: &[Leadership], gaps: &Gaps) -> anyhow::Result<()> {
    let time = Zoned::now().strftime("%H:%M:%S%.3f").to_string();
    for leadership in now {
        let former = shown.iter().find(|old| old.service == leadership.service);
        if former.is_some_and(|former| former.same_state(leadership)) {
            continue;
        }
        let gap = gaps.get(&leadership.service).copied();
        println!("{time}  {}", line(leadership, former, gap));
    }
    Ok(())
}
