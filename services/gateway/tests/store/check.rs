//! The comparison of the cache with its store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use setpoint_gateway::registry::Registry;
use setpoint_gateway::store::cache::{AtLeast, Cache, Filter, Settings};
use setpoint_gateway::store::{Store as _, Write, keys};
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::core::{ConfigMap, Event, Namespace, Node};
use setpoint_testkit::Memory;
use setpoint_testkit::objects::{config_map, enveloped, key_of, kind};
use tokio::time::{sleep, timeout};

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

/// Checks S8.
#[tokio::test(start_paused = true)]
async fn a_difference_is_recorded_as_an_event() {
    let (store, cache) = start().await;
    let registry = Registry::new(store.clone(), cache.clone());
    for name in ["default", "setpoint-system"] {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        namespace.metadata.uid = format!("uid of {name}");
        let key = keys::object(kind::<Namespace>(), &Key::new("", name));
        let write = Write::create(key, enveloped(&namespace, None));
        store.commit(write).await.unwrap();
    }
    let namespaces = Filter::all(kind::<Namespace>(), "");
    cache.list(&namespaces, AtLeast::Newest).await.unwrap();
    let recorded = registry.record_differences("gateway-0");
    let seen = async {
        store.loses_changes.store(true, Ordering::Relaxed);
        create(&store, "web").await;
        let filter = Filter::all(kind::<Event>(), "default");
        loop {
            let events = cache.list(&filter, AtLeast::Newest).await.unwrap();
            if let Some(event) = events.items.first() {
                return event.decode().unwrap();
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let event = tokio::select! {
        () = recorded => unreachable!("it follows the cache"),
        event = timeout(LONG, seen) => event.unwrap(),
    };
    let event: &Event = event.downcast_ref().unwrap();
    assert_eq!(event.reason, "CacheInconsistent");
    assert_eq!(event.involved_object.uid, "uid of setpoint-system");
    let message =
        "The cache of gateway-0 was read anew: at revision 4 it had 0 configmaps, its store 1";
    assert_eq!(event.message, message);
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
        check_interval: Duration::ZERO,
        ..Settings::default()
    };
    let cache = Cache::start(store.clone(), never);
    timeout(LONG, cache.synced()).await.unwrap();
    let mut watch = watch(&cache).await;
    assert!(timeout(LONG, watch.next()).await.is_err());
    assert_eq!(checks("success"), "0");
}
