//! `setpoint leaders`: who leads which service, who stands by, and how fresh their Leases are.

mod live;
mod standing;
mod table;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::{Timestamp, Zoned};
use setpoint_controller::Client;
use setpoint_controller::client::ListOptions;
use setpoint_model::Key;
use setpoint_proto::coordination::Lease;
use setpoint_proto::{Reason, Resource as _};
use tokio::signal::ctrl_c;
use tokio::time::{MissedTickBehavior, interval};

use crate::reach::Reach;
use live::{Live, Silences};
pub use standing::Standing;
use standing::{REPLICAS, TERMS, standings};
use table::{line, table};

/// On a terminal ages grow before one's eyes.
const REDRAW: Duration = Duration::from_millis(500);

/// How to show it.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Keep showing it as it changes, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// For people, or for programs
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// For people, or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table; with --watch and no terminal, a line for each change
    Table,
    /// One JSON array; with --watch, one on each line
    Json,
}

/// Shows who leads.
pub async fn leaders(reach: &Reach, options: &Options) -> anyhow::Result<ExitCode> {
    let gateway = reach.gateway()?;
    // Before a watch, too: it would wait for a gateway for ever.
    let found = ask(&gateway).await?;
    match options.watch {
        false => print(&found, options.output)?,
        true => tokio::select! {
            shown = watch(&gateway, options.output) => shown?,
            _ = ctrl_c() => {}
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// How everyone stands now.
pub async fn ask(gateway: &Client) -> anyhow::Result<Vec<Standing>> {
    let within = |namespace: &str| ListOptions {
        namespace: namespace.to_owned(),
        ..ListOptions::default()
    };
    let leases = gateway.list::<Lease>(&within(TERMS)).await?.items;
    let replicas = gateway.list::<Lease>(&within(REPLICAS)).await?;
    let replicas: Vec<_> = replicas.items.iter().collect();
    let mut terms = Vec::new();
    for lease in &leases {
        terms.push((lease, term(gateway, lease).await?));
    }
    Ok(standings(terms, &replicas, Timestamp::now()))
}

/// Returns the term of a Lease, which stands in the cause of its last write.
async fn term(gateway: &Client, lease: &Lease) -> anyhow::Result<u64> {
    let key = Key::of(&lease.metadata);
    let term = match gateway.object(Lease::RESOURCE, &key).await {
        Ok(object) => object.cause.and_then(|cause| cause.lease_term),
        Err(error) if error.reason == Reason::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    Ok(term.unwrap_or_default())
}

fn print(standings: &[Standing], format: Format) -> anyhow::Result<()> {
    match format {
        Format::Table => print!("{}", table(standings)),
        Format::Json => println!("{}", serde_json::to_string_pretty(standings)?),
    }
    Ok(())
}

async fn watch(gateway: &Client, format: Format) -> anyhow::Result<()> {
    let live = Live::begin(gateway).await;
    match format {
        Format::Table if io::stdout().is_terminal() => redraw(live).await,
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

/// Draws the table over itself, at once when something changes.
async fn redraw(mut live: Live) -> anyhow::Result<()> {
    let mut tick = interval(REDRAW);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut height = 0;
    loop {
        let text = table(&live.standings());
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

/// Calls `show` with what was and what is, whenever that is more than the passing of time.
async fn follow(
    mut live: Live,
    show: impl Fn(&[Standing], &[Standing], &Silences) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut shown: Vec<Standing> = Vec::new();
    loop {
        let now = live.standings();
        let same = now.len() == shown.len() && now.iter().zip(&shown).all(|(a, b)| a.is_as(b));
        if !same {
            show(&shown, &now, &live.silences())?;
            shown = now;
        }
        live.changed().await;
    }
}

fn print_lines(shown: &[Standing], now: &[Standing], silences: &Silences) -> anyhow::Result<()> {
    let time = Zoned::now().strftime("%H:%M:%S%.3f").to_string();
    for standing in now {
        let former = shown.iter().find(|old| old.service == standing.service);
        if former.is_some_and(|former| former.is_as(standing)) {
            continue;
        }
        let silence = silences.get(&standing.service).copied();
        println!("{time}  {}", line(standing, former, silence));
    }
    Ok(())
}
