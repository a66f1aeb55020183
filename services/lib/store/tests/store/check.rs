//! The consistency check of the cache.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Node};
use setpoint_store::cache::{AtLeast, Cache, Settings};
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{config_map, enveloped, key_of, kind};
use setpoint_store::{Memory, Store as _, Write, keys};
use tokio::time::timeout;

use crate::panics::{LONG, config_maps, create, start, watch};

/// Returns the number of comparisons of ConfigMaps with an outcome.
fn checks(status: &str) -> String {
    let families = prometheus::gather();
    let name = "apiserver_storage_consistency_checks_total";
    let family = families.iter().find(|family| family.name() == name);
    let is = |labels: &[prometheus::proto::LabelPair]| {
        let has = |value| labels.iter().any(|label| label.value() == value);
        has("configmaps") && has(status)
    };
    let mut metrics = family.unwrap().get_metric().iter();
    let counted = metrics.find(|metric| is(metric.get_label()));
    counted.unwrap().get_counter().get_value().to_string()
}

/// Checks S8.
#[tokio::test(start_paused = true)]
async fn a_cache_that_missed_a_change_relists() {
    let (store, cache) = start().await;
    let mut watch = watch(&cache).await;
    store.lose_changes();
    let created = create(&store, "web").await;
    let next = timeout(LONG, watch.next()).await.unwrap().unwrap();
    assert_eq!(next.err().unwrap().reason, Reason::Expired);
    timeout(LONG, cache.synced()).await.unwrap();
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!(list.items[0].revision, created);
    assert_eq!(checks("failure"), "1");
}

/// Checks S8: unreadable values, keys of unknown kinds and the order of keys are not differences.
#[tokio::test(start_paused = true)]
async fn a_consistent_cache_does_not_relist() {
    let (store, cache) = start().await;
    let mut watch = watch(&cache).await;
    let value = enveloped(&config_map("web", "1"), None);
    let path = |namespace| keys::object(kind::<ConfigMap>(), &Key::new(namespace, "web"));
    let node = keys::object(kind::<Node>(), &Key::new("", "bad"));
    let unreadable = Bytes::from_static(b"unreadable");
    for (key, value) in [
        (path("a"), &value),
        (path("a-b"), &value),
        ("/registry/configmaps/stray".into(), &value),
        (node, &unreadable),
    ] {
        store
            .commit(Write::create(key, value.clone()))
            .await
            .unwrap();
    }
    let created = create(&store, "gone").await;
    let delete = Write::delete(key_of::<ConfigMap>("gone"), created);
    store.commit(delete).await.unwrap();
    let changes: Vec<_> = (&mut watch).take(4).collect().await;
    assert!(changes.iter().all(Result::is_ok));
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_ne!(checks("success"), "0");
    assert_eq!([checks("failure"), checks("error")], ["0", "0"]);
}

#[tokio::test(start_paused = true)]
async fn a_cache_with_a_check_interval_of_zero_is_not_compared() {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    let never = Settings {
        check_interval: Duration::ZERO,
        ..Settings::default()
    };
    let cache = Cache::start(store.clone(), never);
    timeout(LONG, cache.synced()).await.unwrap();
    let mut watch = watch(&cache).await;
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_eq!(checks("success"), "0");
}

/// Checks S8: a cache that was without its store is compared before it follows, in one scan. With a request for each
/// kind, it would hardly ever follow a busy etcd again.
#[tokio::test(start_paused = true)]
async fn a_cache_that_lost_its_store_is_compared_with_one_request() {
    let (store, cache) = start().await;
    create(&store, "web").await;
    let mut watch = watch(&cache).await;
    let before = store.lists();
    store.cut();
    store.release();
    create(&store, "late").await;
    let next = timeout(LONG, watch.next()).await.unwrap().unwrap();
    assert!(next.is_ok(), "it has resumed");
    assert_eq!(store.lists() - before, 1);
    assert_ne!(checks("success"), "0");
}
