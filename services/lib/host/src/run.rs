//! A process from its first line to its exit code.

use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use setpoint_telemetry::Telemetry;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::probe;
use crate::process::Host;
use crate::serve;
use crate::settings::{self, Common, Settings};
use crate::shutdown::Signals;

/// EX_USAGE of sysexits.h: the settings are wrong, and another attempt will not help.
const USAGE: u8 = 64;

/// Runs a service until `start` returns, or until a signal asks it to stop.
///
/// Settings come in layers, the later ones win: defaults, `deploy/config/<service>.toml` (or `--config FILE`),
/// the environment (`SETPOINT__ELECTION__LEASE_DURATION`), flags (`--election-lease-duration`).
///
/// The exit code is 0 after an orderly stop, 64 for wrong settings and 1 for failure. On SIGTERM or SIGINT the shutdown
/// token is cancelled and `start` has the `drain` setting's time to return; a second signal ends the process at once.
///
/// As `<service> health` it asks the process that runs with the same settings for its readiness instead, and exits 0 or 1:
/// an image that holds nothing but the binary has nobody else to ask.
pub async fn run<S, F, Fut>(service: &'static str, start: F) -> ExitCode
where
    S: Settings,
    F: FnOnce(Host, S) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let (asked, args) = health_asked(env::args_os());
    let (common, settings) = match settings::load::<S>(service, args, |name| env::var(name).ok()) {
        Ok(loaded) => loaded,
        Err(settings::Error::Asked(answer)) => {
            print!("{answer}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{service}: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if asked {
        return health(service, common.listen).await;
    }
    let started = Telemetry::start(
        service,
        &common.instance,
        &common.log,
        common.telemetry.settings(),
    );
    let telemetry = match started {
        Ok(telemetry) => telemetry,
        Err(error) => {
            eprintln!("{service}: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let outcome = live(service, common, settings, &telemetry, start).await;
    if let Err(failure) = &outcome {
        error!(error = format!("{failure:#}"), "failed");
    }
    telemetry.shutdown().await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Is the first argument `health`? And all the others.
fn health_asked(args: impl Iterator<Item = OsString>) -> (bool, Vec<OsString>) {
    let mut args: Vec<_> = args.collect();
    let asked = args.get(1).is_some_and(|first| first == "health");
    if asked {
        args.remove(1);
    }
    (asked, args)
}

async fn health(service: &str, listen: SocketAddr) -> ExitCode {
    match probe::ready(listen).await {
        Ok(()) => {
            println!("{service} is ready");
            ExitCode::SUCCESS
        }
        Err(why) => {
            println!("{service} {why}");
            ExitCode::FAILURE
        }
    }
}

async fn live<S, F, Fut>(
    service: &'static str,
    common: Common,
    settings: S,
    telemetry: &Telemetry,
    start: F,
) -> anyhow::Result<()>
where
    F: FnOnce(Host, S) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let stop = CancellationToken::new();
    let signals = Signals::listen().context("cannot listen to signals")?;
    tokio::spawn(signals.obey(stop.clone()));
    let listener = serve::bind(common.listen)
        .await
        .with_context(|| format!("cannot listen on {}", common.listen))?;
    let address = listener.local_addr()?;
    let limits = common.limits();
    let host = Host::new(
        service,
        common.instance,
        address,
        stop.clone(),
        telemetry.log(),
    )
    .advertised_as(&common.advertise);
    info!(service, instance = host.instance(), %address, version = env!("CARGO_PKG_VERSION"), "started");

    let serving = serve::serve(listener, host.front(), limits, stop.clone());
    let server = tokio::spawn(serving);
    let drain = common.drain;
    let outcome = within(drain, &stop, start(host.clone(), settings)).await;
    host.health().close();
    stop.cancel();
    if timeout(drain, server).await.is_err() {
        warn!(?drain, "some connections did not end in time and are cut");
    }
    info!("stopped");
    outcome
}

/// The outcome of `work`, which has `drain` left once `stop` is cancelled.
async fn within(
    drain: Duration,
    stop: &CancellationToken,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    tokio::pin!(work);
    tokio::select! {
        outcome = &mut work => return outcome,
        () = stop.cancelled() => info!("stopping"),
    }
    timeout(drain, work).await.unwrap_or_else(|_| {
        warn!(?drain, "work did not end in time and is cut");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_ignores_the_stop_is_cut_at_the_deadline() {
        let stop = CancellationToken::new();
        stop.cancel();
        let start = tokio::time::Instant::now();
        within(Duration::from_secs(10), &stop, std::future::pending())
            .await
            .unwrap();
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_fails_says_why_even_while_draining() {
        let stop = CancellationToken::new();
        stop.cancel();
        let work = async { anyhow::bail!("the lease could not be released") };
        let error = within(Duration::from_secs(10), &stop, work)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the lease could not be released");
    }
}
