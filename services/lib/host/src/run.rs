//! Runs a service process, from its settings to its exit code.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use setpoint_telemetry::Telemetry;
use setpoint_tls::{Credentials, Files};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::probe;
use crate::process::Host;
use crate::serve;
use crate::settings::{self, Common, Extension, Settings};
use crate::shutdown::Signals;

/// `EX_USAGE` of sysexits.h: the settings are invalid, so a restart will not help.
const USAGE: u8 = 64;

/// Runs a service until `start` returns, or until a signal asks it to stop.
///
/// Settings are merged from these layers, in increasing precedence: defaults, `deploy/config/<service>.toml` (or
/// `--config FILE`), environment variables (`SETPOINT__ELECTION__LEASE_DURATION`), flags (`--election-lease-duration`).
///
/// The exit code is 0 after an orderly stop, 64 for invalid settings and 1 for failure. On SIGTERM or SIGINT the
/// shutdown token is cancelled and `start` has the time of the `drain` setting to return; a second signal ends the
/// process at once.
///
/// `<service> health` instead queries the readiness of the process that runs with the same settings, and exits with 0
/// or
/// 1. It is the health check of images that contain only the binary.
pub async fn run<S, F, Fut>(service: &'static str, start: F) -> ExitCode
where
    S: Settings,
    F: FnOnce(Host, S) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    run_with(service, (), |host, settings, ()| start(host, settings)).await
}

/// Runs a service as [`run`] does, with further settings beside those of the type `S`.
pub async fn run_with<S, E, F, Fut>(service: &'static str, extension: E, start: F) -> ExitCode
where
    S: Settings,
    E: Extension,
    F: FnOnce(Host, S, E::Settings) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let (is_health, args) = take_health_command(env::args_os());
    let loaded = settings::load::<S, E>(service, &extension, args, |name| env::var(name).ok());
    let (common, settings, further) = match loaded {
        Ok(loaded) => loaded,
        Err(settings::Error::HelpOrVersion(answer)) => {
            say(&answer.to_string());
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{service}: {error}");
            return ExitCode::from(USAGE);
        }
    };
    let files = match settings.has_own_identity() {
        true => Ok(Some(Files::default())),
        false => common.identity_files(),
    };
    let files = match files {
        Ok(files) => files,
        Err(error) => {
            eprintln!("{service}: {error}");
            return ExitCode::from(USAGE);
        }
    };
    if is_health {
        return health(service, common.listen, files.is_some()).await;
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
    let start = |host, settings| start(host, settings, further);
    let outcome = run_service(service, common, files, settings, &telemetry, start).await;
    if let Err(failure) = &outcome {
        error!(error = format!("{failure:#}"), "failed");
    }
    telemetry.shutdown().await;
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Writes to stdout, whose reader may be gone: `<service> --help | head`.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

/// Returns whether the first argument is `health`, and the arguments without it.
fn take_health_command(args: impl Iterator<Item = OsString>) -> (bool, Vec<OsString>) {
    let mut args: Vec<_> = args.collect();
    let is_health = args.get(1).is_some_and(|first| first == "health");
    if is_health {
        args.remove(1);
    }
    (is_health, args)
}

async fn health(service: &str, listen: SocketAddr, is_tls: bool) -> ExitCode {
    match probe::ready(listen, is_tls).await {
        Ok(()) => {
            say(&format!("{service} is ready\n"));
            ExitCode::SUCCESS
        }
        Err(reason) => {
            say(&format!("{service} {reason}\n"));
            ExitCode::FAILURE
        }
    }
}

async fn run_service<S, F, Fut>(
    service: &'static str,
    common: Common,
    files: Option<Files>,
    mut settings: S,
    telemetry: &Telemetry,
    start: F,
) -> anyhow::Result<()>
where
    S: Settings,
    F: FnOnce(Host, S) -> Fut,
    Fut: Future<Output = anyhow::Result<()>>,
{
    let stop = CancellationToken::new();
    let signals = Signals::listen().context("cannot listen to signals")?;
    tokio::spawn(signals.cancel_on_signal(stop.clone()));
    let identified = stop.run_until_cancelled(identify(&mut settings, files));
    let Some(credentials) = identified.await.transpose()? else {
        return Ok(());
    };
    let (address, listeners) = listen(&common).await?;
    let limits = common.limits();
    let host = Host::new(
        service,
        common.instance,
        address,
        stop.clone(),
        telemetry.log(),
    )
    .advertised_as(&common.advertise)
    .identified_by(credentials.as_ref());
    info!(service, instance = host.instance(), %address, version = env!("CARGO_PKG_VERSION"), "started");
    host.certificates().register();
    if credentials.is_none() {
        warn!("listening without TLS: who reaches this port may read and change what passes it");
    }

    let router = host.listener_router();
    let serving = serve::serve_all(credentials, listeners, router, limits, stop.clone());
    let server = tokio::spawn(serving);
    let drain = common.drain;
    let stopping = drain.saturating_add(settings.drain());
    // The future of a whole service is large: on the heap it is not moved from one frame of the stack to the next.
    let work = Box::pin(start(host.clone(), settings));
    let outcome = with_drain_timeout(stopping, &stop, work).await;
    host.health().close();
    stop.cancel();
    if timeout(drain, server).await.is_err() {
        warn!(
            ?drain,
            "some connections did not end in time and are closed"
        );
    }
    info!("stopped");
    outcome
}

/// Reads the files of the identity, if the process has one.
async fn identify<S: Settings>(
    settings: &mut S,
    files: Option<Files>,
) -> anyhow::Result<Option<Credentials>> {
    let Some(files) = files else { return Ok(None) };
    settings.identity(files).await.map(Some)
}

/// Listens on the address of the process, and on further ones at the same port.
async fn listen(common: &Common) -> anyhow::Result<(SocketAddr, Vec<TcpListener>)> {
    let failed = |address| move || format!("cannot listen on {address}");
    let first = serve::bind(common.listen).await;
    let first = first.with_context(failed(common.listen))?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for ip in &common.listen_also {
        let further = SocketAddr::new(*ip, address.port());
        listeners.push(serve::bind_early(further).with_context(failed(further))?);
    }
    Ok((address, listeners))
}

/// Returns the outcome of `work`, which is dropped when it has not ended `drain` after `stop` was cancelled.
async fn with_drain_timeout(
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
        warn!(?drain, "work did not end in time and is dropped");
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_that_ignores_the_shutdown_is_dropped_after_the_drain() {
        let stop = CancellationToken::new();
        stop.cancel();
        let start = tokio::time::Instant::now();
        with_drain_timeout(Duration::from_secs(10), &stop, std::future::pending())
            .await
            .unwrap();
        assert_eq!(start.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_fails_during_the_drain_returns_its_error() {
        let stop = CancellationToken::new();
        stop.cancel();
        let work = async { anyhow::bail!("the lease could not be released") };
        let error = with_drain_timeout(Duration::from_secs(10), &stop, work)
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the lease could not be released");
    }
}
