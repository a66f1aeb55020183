//! `setpoint certs --containers`: the credentials of the containers of compose.yaml.

mod nodes;
#[cfg(test)]
mod tests;
mod volumes;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use volumes::Volumes;

/// The interval of looking for requests of nodes.
const REQUESTS: Duration = Duration::from_millis(250);
/// The interval of looking for certificates to renew.
const RENEWALS: Duration = Duration::from_secs(5);

/// Options for the containers of compose.yaml.
#[derive(Args, Clone, Debug)]
#[group(skip)] // one of this name is that of `certs`
pub struct Options {
    /// Make the credentials of the containers of compose.yaml instead, in the volumes of this folder, and renew them
    #[arg(long = "containers", value_name = "DIR")]
    pub volumes: Option<PathBuf>,
    /// Only check that these have been made
    #[arg(long, requires = "volumes")]
    check: bool,
    /// Address of the API in the kubeconfig
    #[arg(
        long,
        value_name = "URL",
        requires = "volumes",
        default_value = "https://127.0.0.1:6443"
    )]
    server: String,
    /// Further DNS name or IP of the gateways; may be repeated, or separated by commas
    #[arg(long, value_name = "NAME", requires = "volumes", value_delimiter = ',')]
    tls_san: Vec<String>,
    /// Give the kubeconfig to the user who owns this file or folder
    #[arg(long, value_name = "PATH", requires = "volumes")]
    owner_of: Option<PathBuf>,
}

/// Makes what is missing or due in the volumes, and goes on until SIGTERM or SIGINT.
///
/// # Errors
/// With `--check`, if something has not been made.
pub async fn run(folder: PathBuf, options: &Options) -> anyhow::Result<ExitCode> {
    let volumes = Volumes {
        root: folder,
        server: options.server.clone(),
        names: options
            .tls_san
            .iter()
            .filter(|name| !name.is_empty())
            .cloned()
            .collect(),
        owner_of: options.owner_of.clone(),
    };
    if options.check {
        return match volumes.missing()? {
            Some(missing) => bail!("{missing} has not been made"),
            None => Ok(ExitCode::SUCCESS),
        };
    }
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = renew_forever(&volumes) => {}
    }
    Ok(ExitCode::SUCCESS)
}

async fn renew_forever(volumes: &Volumes) {
    loop {
        match volumes.ensure() {
            Ok(made) => made.iter().for_each(|name| println!("made {name}")),
            // The next attempt may succeed: the disk was full.
            Err(error) => eprintln!("{error:#}"),
        }
        let began = Instant::now();
        sleep(REQUESTS).await;
        while began.elapsed() < RENEWALS && !volumes.is_asked() {
            sleep(REQUESTS).await;
        }
    }
}
