//! Starts the gateway and runs it until shutdown.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use setpoint_encryption::Encryption;
use setpoint_host::{Check, Host};
use setpoint_store::cache::{Cache, Health};
use setpoint_store::etcd::Etcd;
use setpoint_store::{Bumped, Encrypted};
use setpoint_task::supervise;
use setpoint_tls::Credentials;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::aggregation::Aggregator;
use crate::audit::{self, Audit};
use crate::dial_policy::DialPolicy;
use crate::explain::flaps;
use crate::http::Streams;
use crate::prometheus_adapter::Adapter;
use crate::registry::Registry;
use crate::router::router;
use crate::server_info::{self, ServerInfo};
use crate::settings::{Authorizers, Settings};

/// The interval of log lines while etcd cannot be reached.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The time in which audit events are written at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The health checks that follow the cache: its store, and kube-apiserver's names of what reads from it.
const CACHE_CHECKS: [&str; 5] = [
    "etcd",
    "informer-sync",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/storage-readiness",
];

/// Serves the API until shutdown. Starts without etcd as well: until it is reached, requests fail.
///
/// # Errors
/// When an endpoint of etcd is not an address, certificates cannot be read, or TLS for Prometheus cannot be set up.
pub async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let shutdown = host.shutdown();
    let checks = CACHE_CHECKS.map(|name| host.health().check(name));
    let etcd = settings.etcd()?;
    if let Some(credentials) = &etcd.credentials {
        host.follow("etcd", credentials);
    }
    let encryption = settings.encryption().map_err(anyhow::Error::msg)?;
    let encryption = Arc::new(Encryption::new(&encryption));
    encryption.start().await;
    let providers = host.health().check("kms-providers");
    providers.follow(encryption.health());
    // Without a configuration, too: values that are encrypted must not be taken for corrupt ones.
    let members = Etcd::connect(&etcd).await?;
    let store = Arc::new(Bumped::new(members.clone()));
    let store = Arc::new(Encrypted::new(store, encryption.clone()));
    let cache = Cache::start(store.clone(), settings.cache());
    let policy = DialPolicy::except(settings.etcd_ports(), host.address().port())
        .with_credentials(host.credentials().cloned());
    let authorizers = settings.authorization();
    let authorizers = authorizers.map_err(anyhow::Error::msg)?;
    if let (Some(own), Some(file)) = (host.credentials(), settings.client_ca_file()) {
        own.know_clients_by(file)?;
    }
    let signed = host.credentials().filter(|_| settings.knows_signers());
    let signed = signed.cloned();
    let authentication = settings.authentication(&authorizers.modes());
    let mut authentication = authentication.map_err(anyhow::Error::msg)?;
    host.instance().clone_into(&mut authentication.instance);
    let plugins = settings.admission_plugins();
    let plugins = plugins.map_err(anyhow::Error::msg)?;
    let audit = audit::start(settings.audit())?;
    let pod_security = settings.pod_security();
    let pod_security = pod_security.map_err(anyhow::Error::msg)?;
    let ranges = settings.service_ranges().map_err(anyhow::Error::msg)?;
    let server = ServerInfo {
        instance: host.instance().to_owned(),
        port: host.address().port(),
        address: server_info::endpoint_address(host.advertised(), ranges.first()).await,
    };
    let loopback = settings.endpoint_loopback_range();
    if let Some(range) = loopback.map_err(anyhow::Error::msg)? {
        setpoint_model::ip::allow_loopback_endpoints(range);
    }
    let adapter = Adapter::new(settings.metrics()).map_err(anyhow::Error::msg)?;
    let registry = Registry::new(store, cache.clone())
        .with_dial_policy(policy)
        .with_aggregator(Aggregator::new(settings.front_proxy()?))
        .with_adapter(adapter)
        .with_auditor(audit.as_ref().map(|audit| audit.auditor.clone()))
        .with_authentication(authentication)
        .map_err(anyhow::Error::msg)?
        .with_pod_security(pod_security)
        .with_service_ranges(ranges)
        .with_flow_control(settings.flow_control());
    let registry = match authorizers {
        Authorizers::Modes(modes) => registry.with_authorization(&modes),
        Authorizers::File(configuration) => registry
            .with_authorizers(configuration)
            .map_err(anyhow::Error::msg)?,
    };
    let registry = registry.with_admission_plugins(&plugins);
    let registry = Arc::new(registry.with_server(server));
    // Streams that the gateway relays from other processes do not end with the cache, so they watch the shutdown.
    let streams = Streams::new(shutdown.clone());
    let router = router(registry.clone());
    tokio::join!(
        host.serve_with_metrics(router.layer(Extension(streams.clone()))),
        streams.drain(),
        supervise("etcd-health", health_report(&host, "etcd-health"), || {
            report_health(cache.clone(), checks.clone(), shutdown.clone())
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
        supervise("etcd-members", health_report(&host, "etcd-members"), || {
            follow_members(&members, etcd.follow_members, shutdown.clone())
        }),
        supervise(
            "cluster-signer",
            health_report(&host, "cluster-signer"),
            || know_clients_of_signers(registry.clone(), signed.clone(), shutdown.clone())
        ),
        supervise("cluster-info", health_report(&host, "cluster-info"), || {
            publish_cluster_info(registry.clone(), &settings, host.clone())
        }),
        supervise("certificates", health_report(&host, "certificates"), || {
            record_expiring(registry.clone(), host.clone())
        }),
        supervise("audit-policy", health_report(&host, "audit-policy"), || {
            follow_audit_policy(registry.clone(), audit.as_ref(), host.clone())
        }),
        supervise("encryption", health_report(&host, "encryption"), || {
            let file = settings.encryption_file();
            follow_encryption(registry.clone(), encryption.clone(), file, host.clone())
        }),
        supervise(
            "configuration-files",
            health_report(&host, "configuration-files"),
            || follow_configurations(registry.clone(), &settings, host.clone())
        ),
    );
    if let Some(audit) = &audit {
        audit.auditor.sink().flush(FLUSH_TIMEOUT).await;
    }
    Ok(())
}

/// Follows which members etcd has, if the settings say so.
async fn follow_members(etcd: &Etcd, is_wanted: bool, shutdown: CancellationToken) {
    if is_wanted {
        shutdown.run_until_cancelled(etcd.follow_members()).await;
    }
}

/// Reads the audit policy again when its file changes, if there is one.
async fn follow_audit_policy(registry: Arc<Registry>, audit: Option<&Audit>, host: Host) {
    if let Some(Audit {
        auditor,
        policy_file,
    }) = audit
    {
        let followed = registry.follow_audit_policy(auditor, policy_file.clone(), host.instance());
        host.shutdown().run_until_cancelled(followed).await;
    }
}

/// Reads the encryption configuration again when its file changes, if there is one.
async fn follow_encryption(
    registry: Arc<Registry>,
    encryption: Arc<Encryption>,
    file: Option<PathBuf>,
    host: Host,
) {
    if let Some(file) = file {
        let followed = registry.follow_encryption(&encryption, file, host.instance());
        host.shutdown().run_until_cancelled(followed).await;
    }
}

/// Reads the configurations of authentication and authorization again when their files change, if there are any.
async fn follow_configurations(registry: Arc<Registry>, settings: &Settings, host: Host) {
    let instance = host.instance();
    let authentication = async {
        if let Some(file) = settings.authentication_file() {
            registry.follow_authentication(file, instance).await;
        }
    };
    let authorization = async {
        if let Some(file) = settings.authorization_file() {
            registry.follow_authorization(file, instance).await;
        }
    };
    let followed = async { tokio::join!(authentication, authorization) };
    host.shutdown().run_until_cancelled(followed).await;
}

/// Knows clients by the CA of the signers, if these credentials are to.
async fn know_clients_of_signers(
    registry: Arc<Registry>,
    credentials: Option<Credentials>,
    shutdown: CancellationToken,
) {
    let known = registry.know_clients_of_signers(credentials);
    shutdown.run_until_cancelled(known).await;
}

/// Publishes the address and the CAs of the cluster, if the settings have the address.
async fn publish_cluster_info(registry: Arc<Registry>, settings: &Settings, host: Host) {
    let credentials = host.credentials().cloned();
    let published = registry.publish_cluster_info(credentials, settings.published_server());
    host.shutdown().run_until_cancelled(published).await;
}

/// Creates Events about certificates of the gateway that are about to expire.
async fn record_expiring(registry: Arc<Registry>, host: Host) {
    let (certificates, shutdown) = (host.certificates().clone(), host.shutdown());
    let recorded = registry.record_expiring(certificates, host.instance());
    shutdown.run_until_cancelled(recorded).await;
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
async fn report_health(
    cache: Cache,
    checks: [Check; CACHE_CHECKS.len()],
    shutdown: CancellationToken,
) {
    let fail = |why: &str| checks.iter().for_each(|check| check.fail(why));
    let mut health = cache.health();
    let report = async {
        loop {
            let now = health.borrow_and_update().clone();
            match &now {
                Health::Following => {
                    checks.iter().for_each(Check::pass);
                    info!("following etcd");
                }
                Health::Loading => fail("the cache has not been loaded from etcd yet"),
                Health::Behind(why) => {
                    fail(&format!("watching etcd failed: {why}"));
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
