//! The comparison of the cache with its store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::StreamExt as _;
use setpoint_gateway::store::cache::{AtLeast, Cache, Settings};
use setpoint_gateway::store::{Store as _, Write, keys};
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Node};
use setpoint_testkit::Memory;
use setpoint_testkit::objects::{config_map, enveloped, key_of, kind};
use tokio::time::timeout;

use crate::faulty::Faulty;
use crate::panics::{LONG, config_maps, create, start, watch};

/// How many comparisons of ConfigMaps ended so.
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
async fn a_cache_that_missed_a_change_is_read_anew() {
    let (store, cache) = start().await;
    let mut watch = watch(&cache).await;
    store.loses_changes.store(true, Ordering::Relaxed);
    let created = create(&store, "web").await;
    let next = timeout(LONG, watch.next()).await.unwrap().unwrap();
    assert_eq!(next.err().unwrap().reason, Reason::Expired);
    timeout(LONG, cache.synced()).await.unwrap();
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!(list.items[0].revision, created);
    assert_eq!(checks("failure"), "1");
}

/// Checks S8: values that cannot be read, keys of nothing that is known, and the order of keys are no differences.
#[tokio::test(start_paused = true)]
async fn a_cache_that_missed_nothing_goes_on() {
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
async fn a_cache_is_not_compared_when_that_is_switched_off() {
    let store = Faulty::over(Arc::new(Memory::default()));
    let never = Settings {
        check_interval: std::time::Duration::ZERO,
        ..Settings::default()
    };
    let cache = Cache::start(store.clone(), never);
    timeout(LONG, cache.synced()).await.unwrap();
    let mut watch = watch(&cache).await;
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_eq!(checks("success"), "0");
}
