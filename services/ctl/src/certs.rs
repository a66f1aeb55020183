//! `setpoint certs`: makes the certificates of the local cluster, or those of the containers of compose.yaml, renews
//! them, and changes the CAs of the local cluster.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::containers;
use crate::health;
use crate::launcher::{ClusterSpec, StateDir, topology};
use crate::rotation::Rotation;

/// The interval of looking for certificates to renew. By the clock of the day and not by a timer, so that those that
/// have expired while the machine slept are found when it wakes.
const INTERVAL: Duration = Duration::from_secs(5);

/// Options of `setpoint certs`.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Keep running, and renew each certificate after two thirds of its life
    #[arg(long, conflicts_with = "volumes")]
    renew: bool,
    #[command(flatten)]
    containers: containers::Options,
    /// Change the CAs while the cluster runs: the old ones are trusted until `--remove-old-ca`
    #[arg(long, conflicts_with_all = ["renew", "remove_old_ca", "volumes"])]
    rotate_ca: bool,
    /// Trust the CAs from before `--rotate-ca` no longer; ends the connections of clients with certificates by them
    #[arg(long, conflicts_with_all = ["renew", "volumes"])]
    remove_old_ca: bool,
    /// Name of the process
    #[arg(long, value_name = "NAME", hide = true, default_value = "certs")]
    instance: String,
    /// Address of the readiness check
    #[arg(long, value_name = "ADDRESS", hide = true)]
    listen: Option<SocketAddr>,
}

/// Makes what is missing or due, and with `--renew` goes on until SIGTERM or SIGINT.
pub async fn certs(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &options.containers.volumes {
        return containers::run(folder.clone(), &options.containers).await;
    }
    if options.renew {
        return renew(state_dir, options).await;
    }
    let _lock = state_dir.lock()?;
    if options.rotate_ca || options.remove_old_ca {
        if state_dir.components().exists() {
            bail!("the CAs are those of the machine on which the cluster was started");
        }
        let spec = ClusterSpec::load(state_dir)?.unwrap_or_default();
        let rotation = Rotation::new(state_dir, &spec);
        match options.rotate_ca {
            true => rotation.rotate().await?,
            false => rotation.remove_old().await?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    let stages = topology::recorded(state_dir)?;
    let made = state_dir.pki().ensure(stages.iter().flatten())?;
    println!("{made} certificates were made");
    Ok(ExitCode::SUCCESS)
}

async fn renew(state_dir: &StateDir, options: &Options) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
        tokio::spawn(health::serve(listener));
    }
    println!("{} renews certificates", options.instance);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = renew_forever(state_dir) => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn renew_forever(state_dir: &StateDir) {
    let pki = state_dir.pki();
    loop {
        match pki.renew_due() {
            Ok(renewed) => renewed.iter().for_each(|name| println!("renewed {name}")),
            // The next attempt may succeed: the disk was full, or the folder is being replaced.
            Err(error) => eprintln!("{error:#}"),
        }
        sleep(INTERVAL).await;
    }
}
