//! Keeps the ConfigMap that tells other API servers how to recognise this one and its users (upstream: the controller
//! of cluster authentication trust).
//!
//! It has the CAs by which this server knows clients, if it speaks TLS, and those of the front proxy.
//!
//! 2026-11: we chose to publish the CAs that a gateway knows now, over adding them to those that are published, as
//! upstream: a CA that was removed must not stay trusted. Wrong if gateways have different CAs for long: they would
//! write in turn, once a second.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::select;
use serde_json::json;
use setpoint_codec::{Kind, kind_of};
use setpoint_proto::ApiError;
use setpoint_proto::core::{ConfigMap, Secret};
use setpoint_tls::Credentials;
use tokio::sync::watch;
use tokio::time::sleep;

use super::attempts::repeat;
use super::kept::keep;
use crate::aggregation::{EXTRA_PREFIX, FRONT_PROXY, FRONT_PROXY_NAMESPACE, GROUP, UID, USER};
use crate::registry::{Filter, Registry, RequestContext, Start, Watch, WatchSpec};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// The least time between two writes: gateways may read a changed file of CAs one after the other.
const INTERVAL: Duration = Duration::from_secs(1);
/// The key of the CAs of clients.
const CLIENT_CA: &str = "client-ca-file";
/// The manager of the writes.
const CONTROLLER: &str = "cluster-authentication-trust-controller";

/// Keeps the ConfigMap until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("extension-authentication", || follow(registry)).await;
}

/// Restores the ConfigMap whenever it, the CAs of clients or the certificate of the front proxy changes, until a watch
/// ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let maps = watch(registry, kind_of::<ConfigMap>(), NAMESPACE).await?;
    let secrets = watch(registry, kind_of::<Secret>(), FRONT_PROXY_NAMESPACE).await?;
    let mut events = select(maps, secrets);
    let mut trust = credentials(registry).map(Credentials::authority_changes);
    restore(registry).await?;
    loop {
        tokio::select! {
            event = events.next() => {
                let Some(event) = event.transpose()? else {
                    return Ok(());
                };
                if ![NAME, FRONT_PROXY].contains(&event.object.key.name.as_str()) {
                    continue;
                }
            }
            () = changed(trust.as_mut()) => {}
        }
        restore(registry).await?;
        sleep(INTERVAL).await;
    }
}

/// Returns the credentials of this server, which are those of its connections, too.
fn credentials(registry: &Registry) -> Option<&Credentials> {
    registry.dial_policy().credentials()
}

/// Waits until the CAs of clients change; for ever without TLS.
async fn changed(trust: Option<&mut watch::Receiver<()>>) {
    match trust {
        Some(trust) => {
            // The sender is in the credentials.
            let _ = trust.changed().await;
        }
        None => pending().await,
    }
}

async fn watch(
    registry: &Registry,
    kind: &'static Kind,
    namespace: &str,
) -> Result<Watch, ApiError> {
    let spec = WatchSpec {
        filter: Filter::all(kind, namespace),
        start: Start::Now,
        bookmarks: false,
    };
    registry.cache().watch(spec).await
}

/// Creates or corrects the ConfigMap. Keys of others stay.
async fn restore(registry: &Registry) -> Result<(), ApiError> {
    let mut wanted = ConfigMap {
        data: data(registry).await?,
        ..ConfigMap::default()
    };
    wanted.metadata.name = NAME.into();
    let context = RequestContext::of_server().by(CONTROLLER);
    let kept = keep(registry, &context, NAMESPACE, wanted, |map, wanted| {
        map.data.extend(wanted.data.clone());
    });
    kept.await.map(drop)
}

async fn data(registry: &Registry) -> Result<BTreeMap<String, String>, ApiError> {
    let certificate = registry
        .aggregator()
        .front_proxy
        .certificate(registry)
        .await?;
    let list = |value: &str| json!([value]).to_string();
    let header = |name: &str| list(&canonical(name));
    let data = [
        ("client-ca-file", certificate.ca.clone()),
        ("allowed-names", list(&certificate.name)),
        ("username-headers", header(USER.as_str())),
        ("uid-headers", header(UID.as_str())),
        ("group-headers", header(GROUP.as_str())),
        ("extra-headers-prefix", header(EXTRA_PREFIX)),
    ];
    let data = data.map(|(key, value)| (format!("requestheader-{key}"), value));
    let clients = credentials(registry).map(Credentials::client_authorities);
    let clients = clients.map(|bundle| (CLIENT_CA.to_owned(), bundle));
    Ok(data.into_iter().chain(clients).collect())
}

/// Returns the name of a header as upstream writes it: each word begins with a capital letter.
fn canonical(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_written_as_upstream_writes_them() {
        assert_eq!(canonical(USER.as_str()), "X-Remote-User");
        assert_eq!(canonical(EXTRA_PREFIX), "X-Remote-Extra-");
    }
}
