//! The gateway from its settings to its end.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use setpoint_host::{Check, Host};
use setpoint_store::cache::{Cache, Health};
use setpoint_store::etcd::Etcd;
use setpoint_task::supervise;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::edge;
use crate::explain::flaps;
use crate::peers::Peers;
use crate::registry::Registry;
use crate::settings::Settings;

/// Between two lines that say that etcd is still not there.
const REMIND: Duration = Duration::from_secs(10);

/// Serves the API until the process should stop. It need not find etcd up: until it is, requests are told so.
///
/// # Errors
/// When an endpoint of etcd is no address.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let shutdown = host.shutdown();
    let etcd = host.health().check("etcd");
    let store = Arc::new(Etcd::connect(&settings.etcd()).await?);
    let cache = Cache::start(store.clone(), settings.cache());
    let peers = Peers::except(settings.etcd_ports(), host.address().port());
    let registry = Arc::new(Registry::new(store, cache.clone()).calling(peers));
    tokio::join!(
        // What is passed on from elsewhere has no end that the cache would bring.
        host.serve(
            edge::within(settings.flow_control(), registry.clone())
                .layer(Extension(shutdown.clone()))
        ),
        supervise("etcd-health", fares(&host, "etcd-health"), || {
            report(cache.clone(), etcd.clone(), shutdown.clone())
        }),
        registry
            .clone()
            .run_background(settings.event_ttl(), shutdown.clone(), |task| fares(
                &host, task
            )),
        supervise(
            "cache-differences",
            fares(&host, "cache-differences"),
            || {
                record_differences(
                    registry.clone(),
                    host.instance().to_owned(),
                    shutdown.clone(),
                )
            }
        ),
        supervise("flaps", fares(&host, "flaps"), || watch_flaps(
            registry.clone(),
            host.instance().to_owned(),
            settings.flap_window(),
            shutdown.clone()
        )),
        close(cache.clone(), shutdown.clone()),
    );
    Ok(())
}

/// Returns a report of how a task fares: the process is not ready while one keeps failing.
fn fares(host: &Host, task: &'static str) -> impl Fn(Result<(), String>) + use<> {
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

/// Looks out for writers that undo each other, if anybody wants to know.
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

/// Watches have no end of their own: without this they would hold up the drain.
async fn close(cache: Cache, shutdown: CancellationToken) {
    shutdown.cancelled().await;
    cache.close();
}

/// Tells readiness, and the log, how the cache stands to etcd.
async fn report(cache: Cache, check: Check, shutdown: CancellationToken) {
    let mut health = cache.health();
    let told = async {
        loop {
            let now = health.borrow_and_update().clone();
            match &now {
                Health::Following => {
                    check.pass();
                    info!("following etcd");
                }
                Health::Loading => check.fail("not everything has been read from etcd yet"),
                Health::Behind(why) => {
                    check.fail(format!("etcd cannot be followed: {why}"));
                    warn!(why, "etcd cannot be followed; trying again");
                }
            }
            wait(&mut health, &now).await;
        }
    };
    shutdown.run_until_cancelled(told).await;
}

/// Until it changes, or while all is not well, until it is time to say so again.
async fn wait(health: &mut tokio::sync::watch::Receiver<Health>, now: &Health) {
    let changed = health.changed();
    if *now == Health::Following {
        let _ = changed.await;
    } else if timeout(REMIND, changed).await.is_err() {
        warn!("still waiting for etcd");
    }
}
