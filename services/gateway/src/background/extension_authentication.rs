//! Keeps the ConfigMap that tells other API servers how to recognise this one and its users (upstream: the controller
//! of cluster authentication trust).
//!
//! It has no `client-ca-file`, as the gateway knows no client certificates: such servers authenticate users by the
//! headers of the front proxy and by TokenReviews.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::select;
use serde_json::json;
use setpoint_codec::{Kind, Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Secret};
use setpoint_proto::{ApiError, Reason};

use super::attempts::repeat;
use crate::aggregation::{EXTRA_PREFIX, FRONT_PROXY, FRONT_PROXY_NAMESPACE, GROUP, UID, USER};
use crate::registry::{
    AtLeast, Filter, Registry, RequestContext, Start, Target, Watch, WatchSpec, errors,
};
use crate::write::current::Current;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
/// The manager of the writes.
const CONTROLLER: &str = "cluster-authentication-trust-controller";

/// Keeps the ConfigMap until dropped.
pub(crate) async fn run(registry: &Registry) {
    repeat("extension-authentication", || follow(registry)).await;
}

/// Restores the ConfigMap whenever it or the certificate of the front proxy changes, until a watch ends.
async fn follow(registry: &Registry) -> Result<(), ApiError> {
    let maps = watch(registry, kind_of::<ConfigMap>(), NAMESPACE).await?;
    let secrets = watch(registry, kind_of::<Secret>(), FRONT_PROXY_NAMESPACE).await?;
    let mut events = select(maps, secrets);
    restore(registry).await?;
    while let Some(event) = events.next().await {
        let name = event?.object.key.name.clone();
        if name == NAME || name == FRONT_PROXY {
            restore(registry).await?;
        }
    }
    Ok(())
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
    let wanted = data(registry).await?;
    let (kind, key) = (kind_of::<ConfigMap>(), Key::new(NAMESPACE, NAME));
    let context = RequestContext::of_server().by(CONTROLLER);
    let Some(cached) = registry.cache().get(kind, &key, AtLeast::Any).await? else {
        let mut made = ConfigMap {
            data: wanted,
            ..ConfigMap::default()
        };
        made.metadata.name = NAME.into();
        let target = Target::new(kind, NAMESPACE, "", "")?;
        return match registry.create(&context, &target, Box::new(made)).await {
            Err(error) if error.reason != Reason::AlreadyExists => Err(error),
            _ => Ok(()),
        };
    };
    let object = errors::readable(cached.decode())?;
    let current = object.downcast_ref::<ConfigMap>();
    let has = |current: &ConfigMap| {
        wanted
            .iter()
            .all(|(key, value)| current.data.get(key) == Some(value))
    };
    if current.is_none_or(has) {
        return Ok(());
    }
    let target = Target::whole(kind, &key);
    let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
        let new = slot.insert(old.object.clone_box());
        if let Some(new) = new.downcast_mut::<ConfigMap>() {
            new.data.extend(wanted.clone());
        }
        Ok(())
    };
    let updated = registry.guaranteed_update(&context, &target, &mut mutate);
    updated.await.map(|_| ())
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
    Ok(data.into())
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
