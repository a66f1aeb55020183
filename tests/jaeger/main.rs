//! A stand-in for Jaeger, for machines that cannot pull its image: spans in memory, Jaeger's UI over them.

use std::net::SocketAddr;

use clap::Parser;
use setpoint_tests::jaeger::{Limits, serve};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Takes spans by OTLP over gRPC, keeps them in memory, and serves Jaeger's UI and query API.
#[derive(Parser)]
#[command(name = "jaeger", version)]
struct Options {
    /// Where spans arrive.
    #[arg(long, default_value = "0.0.0.0:4317")]
    otlp: SocketAddr,
    /// Where the UI and the query API are.
    #[arg(long, default_value = "0.0.0.0:16686")]
    ui: SocketAddr,
    /// How many traces are kept.
    #[arg(long, default_value_t = Limits::default().traces)]
    traces: u32,
    /// How many MiB the kept traces may take.
    #[arg(long, default_value_t = Limits::default().memory >> 20)]
    memory: usize,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let otlp = TcpListener::bind(options.otlp).await?;
    let ui = TcpListener::bind(options.ui).await?;
    eprintln!(
        "spans arrive on {}, the UI is on http://{}",
        otlp.local_addr()?,
        ui.local_addr()?
    );
    let limits = Limits {
        traces: options.traces,
        memory: options.memory << 20,
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Ok(serve(otlp, ui, limits, stop).await?)
}
