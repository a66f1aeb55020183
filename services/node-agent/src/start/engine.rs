//! The container engine of the agent, or the fallback to processes.

use std::time::Duration;

use anyhow::{Context as _, bail};
use setpoint_controller::Backoff;
use setpoint_host::{Check, Host};
use setpoint_runtime::Kind;
use setpoint_runtime::cri::{ConnectError, Service};
use setpoint_runtime::docker::{Engine, Fallback};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::settings::Settings;

/// The readiness check of the runtime that serves the CRI.
const RUNTIME: &str = "runtime";

/// Connects to the container engine if the settings ask for one. If there is none and the settings allow the fallback,
/// switches `settings` to processes and returns the reason.
///
/// # Errors
/// If no engine answers and no fallback is allowed.
pub async fn connect(settings: &mut Settings) -> anyhow::Result<(Option<Engine>, String)> {
    if settings.runtime != Kind::Docker {
        return Ok((None, String::new()));
    }
    match Engine::connect(&settings.docker).await {
        Ok(engine) if !settings.docker.published_address.is_empty() && !engine.contained => {
            bail!("docker.published_address needs an agent in a container of the engine")
        }
        Ok(engine) => {
            info!(cluster = engine.cluster, address = %engine.address, "connected to the container engine");
            if let (true, Some(name)) = (settings.node_name.is_empty(), &engine.node_name) {
                settings.node_name.clone_from(name);
            }
            Ok((Some(engine), String::new()))
        }
        Err(error) if settings.docker.fallback == Fallback::Process => {
            warn!(%error, "no container engine; running containers as processes");
            settings.runtime = Kind::Process;
            Ok((None, format!("{error}: containers run as processes")))
        }
        Err(error) => {
            Err(error).context("no container engine answers; see the setting docker.fallback")
        }
    }
}

/// Connects to the runtime that serves the CRI if the settings ask for one. Waits for one that does not answer yet: the
/// readiness check [`RUNTIME`] fails for that reason meanwhile. Returns `None` as well if the process shuts down first.
///
/// # Errors
/// If the setting names no socket, or the runtime does not serve version v1.
pub async fn connect_cri(settings: &Settings, host: &Host) -> anyhow::Result<Option<Service>> {
    if settings.runtime != Kind::Cri {
        return Ok(None);
    }
    let check = host.health().check(RUNTIME);
    let shutdown = host.shutdown();
    let Some(service) = shutdown.run_until_cancelled(answer(settings, &check)).await else {
        return Ok(None);
    };
    let service = service?;
    check.pass();
    info!(
        name = service.name,
        version = service.version,
        cgroup_driver = %service.cgroup_driver,
        "connected to the container runtime"
    );
    Ok(Some(service))
}

/// Connects to a runtime, again until it answers.
async fn answer(settings: &Settings, check: &Check) -> Result<Service, ConnectError> {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
    let mut told = String::new();
    loop {
        match Service::connect(&settings.cri).await {
            Err(error @ (ConnectError::Socket { .. } | ConnectError::Call { .. })) => {
                let why = error.to_string();
                if why != told {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    warn!(error = why, cause, "waiting for the container runtime");
                    check.fail(why.clone());
                    told = why;
                }
                sleep(backoff.next_delay()).await;
            }
            connected => return connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F21.
    #[tokio::test]
    async fn without_an_engine_processes_are_used_only_if_the_fallback_allows_it() {
        let mut settings = Settings {
            runtime: Kind::Docker,
            ..Settings::default()
        };
        settings.docker.socket = "/nowhere/docker.sock".into();
        assert!(connect(&mut settings).await.is_err());
        assert_eq!(settings.runtime, Kind::Docker);
        settings.docker.fallback = Fallback::Process;
        let (engine, why) = connect(&mut settings).await.unwrap();
        assert!(
            engine.is_none() && why.contains("/nowhere/docker.sock"),
            "{why}"
        );
        assert_eq!(settings.runtime, Kind::Process);
    }
}
