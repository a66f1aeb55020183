//! Panics of the cache's tasks: each task is restarted, and one that keeps panicking makes the cache unhealthy.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use setpoint_model::Revision;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_store::cache::{AtLeast, Cache, Filter, Health, Settings, Start, Watch, WatchSpec};
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{config_map, enveloped, key_of, kind};
use setpoint_store::{Memory, Store, Write};
use tokio::time::timeout;

/// A timeout in the paused time of these tests.
pub const LONG: Duration = Duration::from_secs(600);

pub async fn start() -> (Arc<FaultyStore>, Cache) {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    let cache = Cache::start(store.clone(), Settings::default());
    timeout(LONG, cache.synced()).await.unwrap();
    (store, cache)
}

pub fn config_maps() -> Filter {
    Filter::all(kind::<ConfigMap>(), "")
}

pub async fn create(store: &Arc<FaultyStore>, name: &str) -> Revision {
    let value = enveloped(&config_map(name, name), None);
    let write = Write::create(key_of::<ConfigMap>(name), value);
    store.commit(write).await.unwrap()
}

pub async fn watch(cache: &Cache) -> Watch {
    let spec = WatchSpec {
        filter: config_maps(),
        start: Start::Now,
        bookmarks: false,
    };
    cache.watch(spec).await.unwrap()
}

/// Checks S1, S4.
#[tokio::test(start_paused = true)]
async fn a_reflector_relists_after_a_panic() {
    let (store, cache) = start().await;
    let mut watch = watch(&cache).await;
    store.panic_in_watches(1);
    let created = create(&store, "web").await;
    let next = timeout(LONG, watch.next()).await.unwrap().unwrap();
    assert_eq!(next.err().unwrap().reason, Reason::Expired);
    timeout(LONG, cache.synced()).await.unwrap();
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!(list.items[0].revision, created);
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_keeps_panicking_makes_the_cache_unready_until_it_recovers() {
    let (store, cache) = start().await;
    store.panic_in_watches(usize::MAX);
    create(&store, "web").await;
    let mut health = cache.health();
    let says_so =
        |health: &Health| matches!(health, Health::Behind(why) if why.contains("in a row"));
    timeout(LONG, health.wait_for(says_so))
        .await
        .unwrap()
        .unwrap();
    // A relist between two panics does not count as recovery.
    let recovered = timeout(LONG, health.wait_for(|health| *health == Health::Following));
    assert!(recovered.await.is_err());
    store.panic_in_watches(0);
    timeout(LONG, cache.synced()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_reading_the_newest_revision_fails_only_the_waiting_reads() {
    let (store, cache) = start().await;
    store.panic_in_revision(1);
    let unanswered = timeout(LONG, cache.newest()).await.unwrap();
    assert_eq!(unanswered.unwrap_err().reason, Reason::ServiceUnavailable);
    let created = create(&store, "web").await;
    let newest = timeout(LONG, cache.newest()).await.unwrap();
    assert_eq!(newest.unwrap(), created);
}

#[tokio::test(start_paused = true)]
async fn a_stall_of_a_nanosecond_does_not_break_the_sweep() {
    let settings = Settings {
        stall: Duration::from_nanos(1),
        ..Settings::default()
    };
    let cache = Cache::start(Arc::new(Memory::default()), settings);
    let mut health = cache.health();
    timeout(LONG, cache.synced()).await.unwrap();
    // A task is reported after three panics, which would take less than a second.
    let behind = health.wait_for(|health| matches!(health, Health::Behind(_)));
    assert!(timeout(Duration::from_secs(10), behind).await.is_err());
}
