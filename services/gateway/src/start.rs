//! Starts the gateway and runs it until shutdown.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use setpoint_host::{Check, Host};
use setpoint_store::cache::{Cache, Health};
use setpoint_store::etcd::Etcd;
use setpoint_task::supervise;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::explain::flaps;
use crate::peers::Peers;
use crate::registry::Registry;
use crate::router::router_with;
use crate::settings::Settings;

/// The interval of log lines while etcd cannot be reached.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Serves the API until shutdown. Starts without etcd as well: until it is reached, requests fail.
///
/// # Errors
/// When an endpoint of etcd is not an address.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let shutdown = host.shutdown();
    let etcd = host.health().check("etcd");
    let store = Arc::new(Etcd::connect(&settings.etcd()).await?);
    let cache = Cache::start(store.clone(), settings.cache());
    let peers = Peers::except(settings.etcd_ports(), host.address().port());
    let registry = Arc::new(Registry::new(store, cache.clone()).with_peers(peers));
    // Streams that the gateway relays from other processes do not end with the cache, so they watch the shutdown.
    let router = router_with(settings.flow_control(), registry.clone());
    tokio::join!(
        host.serve(router.layer(Extension(shutdown.clone()))),
        supervise("etcd-health", health_report(&host, "etcd-health"), || {
            report_health(cache.clone(), etcd.clone(), shutdown.clone())
        }),
        registry
            .clone()
            .run_background(settings.event_ttl(), shutdown.clone(), |task| {
                health_report(&host, task)
            }),
        supervise(
            "cache-differences",
            health_report(&host, "cache-differences"),
            || record_differences(
                registry.clone(),
                host.instance().to_owned(),
                shutdown.clone(),
            )
        ),
        supervise("flaps", health_report(&host, "flaps"), || watch_flaps(
            registry.clone(),
            host.instance().to_owned(),
            settings.flap_window(),
            shutdown.clone()
        )),
        close_watches(cache.clone(), shutdown.clone()),
    );
    Ok(())
}

/// Returns a callback that sets the health check of a task: the process is not ready while a task keeps failing.
fn health_report(host: &Host, task: &'static str) -> impl Fn(Result<(), String>) + use<> {
    let check = host.health().check(task);
    move |state| match state {
        Ok(()) => check.pass(),
        Err(why) => check.fail(why),
    }
}

/// Creates Events about differences between the cache and its store.
async fn record_differences(
    registry: Arc<Registry>,
    instance: String,
    shutdown: CancellationToken,
) {
    let recorded = registry.record_differences(&instance);
    shutdown.run_until_cancelled(recorded).await;
}

/// Detects managers that overwrite each other's fields, unless this is turned off.
async fn watch_flaps(
    registry: Arc<Registry>,
    instance: String,
    window: Option<Duration>,
    shutdown: CancellationToken,
) {
    if let Some(window) = window {
        let watched = flaps::watch(registry, instance, window);
        shutdown.run_until_cancelled(watched).await;
    }
}

/// Ends all watches at shutdown; otherwise the server would wait for them while it drains connections.
async fn close_watches(cache: Cache, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    cache.close();
}

/// Reports the health of the cache as readiness and in the log.
async fn report_health(cache: Cache, check: Check, shutdown: CancellationToken) {
    let mut health = cache.health();
    let report = async {
        loop {
            let now = health.borrow_and_update().clone();
            match &now {
                Health::Following => {
                    check.pass();
                    info!("following etcd");
                }
                Health::Loading => check.fail("the cache has not been loaded from etcd yet"),
                Health::Behind(why) => {
                    check.fail(format!("watching etcd failed: {why}"));
                    warn!(why, "watching etcd failed; trying again");
                }
            }
            next_report(&mut health, &now).await;
        }
    };
    shutdown.run_until_cancelled(report).await;
}

/// Waits for a change of the health; if it is bad, at most until the next log line is due.
async fn next_report(health: &mut watch::Receiver<Health>, now: &Health) {
    let changed = health.changed();
    if *now == Health::Following {
        let _ = changed.await;
    } else if timeout(LOG_INTERVAL, changed).await.is_err() {
        warn!("still waiting for etcd");
    }
}
