//! The comparison of each gateway's cache with etcd, object by object.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use etcd_client::GetOptions;
use serde_json::Value;
use setpoint_tests::Address;
use tokio::time::sleep;

use crate::api::send;
use crate::snapshot::{RESOURCES, path, text};

/// The revisions of objects, by `<namespace>/<name>`.
type Revisions = BTreeMap<String, i64>;

/// The number of comparisons: a gateway may be a moment behind.
const ATTEMPTS: usize = 10;
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the differences between the caches of the gateways and etcd, in all resources that rest when the cluster
/// does.
///
/// # Errors
/// A gateway or etcd does not answer.
pub async fn differences(gateways: &[Address], etcd: &Address) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for gateway in gateways {
        for (group, plural) in RESOURCES.iter().filter(|(_, plural)| *plural != "nodes") {
            found.extend(difference(gateway, etcd, group, plural).await?);
        }
    }
    Ok(found)
}

async fn difference(
    gateway: &Address,
    etcd: &Address,
    group: &str,
    plural: &str,
) -> anyhow::Result<Option<String>> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let (cached, stored) = (
            cached(gateway, group, plural).await?,
            stored(etcd, plural).await?,
        );
        if cached == stored {
            return Ok(None);
        }
        let differs = |key: &&String| cached.get(*key) != stored.get(*key);
        let first = cached
            .keys()
            .chain(stored.keys())
            .find(differs)
            .cloned()
            .unwrap_or_default();
        let (ours, theirs) = (cached.get(&first), stored.get(&first));
        last = Some(format!(
            "the cache of {gateway} has {} {plural}, etcd {}; {first} is at revision {ours:?} and {theirs:?}",
            cached.len(),
            stored.len(),
        ));
        sleep(PAUSE).await;
    }
    Ok(last)
}

/// Returns the objects in the cache of a gateway: a list at any version is not read from etcd.
async fn cached(gateway: &Address, group: &str, plural: &str) -> anyhow::Result<Revisions> {
    let path = format!("{}?resourceVersion=0", path(group, plural));
    let answer = send(gateway, "GET", &path, None).await?;
    ensure!(answer.status.is_success(), "{path}: {}", answer.body);
    let list: Value = serde_json::from_str(&answer.body)?;
    let items = list["items"].as_array().into_iter().flatten();
    let revisions = items.map(|object| {
        let (namespace, name) = (
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
        );
        let revision = text(object, "/metadata/resourceVersion").parse()?;
        Ok((format!("{namespace}/{name}"), revision))
    });
    revisions.collect()
}

async fn stored(etcd: &Address, plural: &str) -> anyhow::Result<Revisions> {
    let prefix = format!("/registry/{plural}/");
    let mut client = etcd.etcd().await?;
    let options = GetOptions::new().with_prefix().with_keys_only();
    let answer = client.get(prefix.clone(), Some(options)).await?;
    let revisions = answer.kvs().iter().map(|kv| {
        let key = kv.key_str()?.trim_start_matches(&prefix).to_owned();
        Ok((key, kv.mod_revision()))
    });
    revisions.collect()
}
