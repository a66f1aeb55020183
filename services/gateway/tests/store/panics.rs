//! Panics in the cache's tasks: each is restarted, and one that keeps failing shows in the cache's health.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use setpoint_gateway::store::cache::{
    AtLeast, Cache, Filter, Health, Settings, Start, Watch, WatchSpec,
};
use setpoint_gateway::store::{Store, Write};
use setpoint_model::Revision;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;
use setpoint_testkit::Memory;
use setpoint_testkit::objects::{config_map, enveloped, key_of, kind};
use tokio::time::timeout;

use crate::faulty::Faulty;

/// Long in the time of these tests, which is paused.
pub const LONG: Duration = Duration::from_secs(600);

pub async fn start() -> (Arc<Faulty>, Cache) {
    let store = Faulty::over(Arc::new(Memory::default()));
    let cache = Cache::start(store.clone(), Settings::default());
    timeout(LONG, cache.synced()).await.unwrap();
    (store, cache)
}

pub fn config_maps() -> Filter {
    Filter::all(kind::<ConfigMap>(), "")
}

pub async fn create(store: &Arc<Faulty>, name: &str) -> Revision {
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
async fn a_feed_that_panics_reads_everything_anew() {
    let (store, cache) = start().await;
    let mut watch = watch(&cache).await;
    store.watch_panics.store(1, Ordering::Relaxed);
    let created = create(&store, "web").await;
    let next = timeout(LONG, watch.next()).await.unwrap().unwrap();
    assert_eq!(next.err().unwrap().reason, Reason::Expired);
    timeout(LONG, cache.synced()).await.unwrap();
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!(list.items[0].revision, created);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_keeps_panicking_makes_the_cache_unready_until_it_has_recovered() {
    let (store, cache) = start().await;
    store.watch_panics.store(usize::MAX, Ordering::Relaxed);
    create(&store, "web").await;
    let mut health = cache.health();
    let says_so =
        |health: &Health| matches!(health, Health::Behind(why) if why.contains("in a row"));
    timeout(LONG, health.wait_for(says_so))
        .await
        .unwrap()
        .unwrap();
    // Reading alone, between two panics, is not recovery.
    let recovered = timeout(LONG, health.wait_for(|health| *health == Health::Following));
    assert!(recovered.await.is_err());
    store.watch_panics.store(0, Ordering::Relaxed);
    timeout(LONG, cache.synced()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_asking_for_the_newest_revision_costs_only_those_who_waited() {
    let (store, cache) = start().await;
    store.revision_panics.store(1, Ordering::Relaxed);
    let unanswered = timeout(LONG, cache.newest()).await.unwrap();
    assert_eq!(unanswered.unwrap_err().reason, Reason::ServiceUnavailable);
    let created = create(&store, "web").await;
    let newest = timeout(LONG, cache.newest()).await.unwrap();
    assert_eq!(newest.unwrap(), created);
}

#[tokio::test(start_paused = true)]
async fn watchers_are_swept_however_soon_they_stall() {
    let settings = Settings {
        stall: Duration::from_nanos(1),
        ..Settings::default()
    };
    let cache = Cache::start(Arc::new(Memory::default()), settings);
    let mut health = cache.health();
    timeout(LONG, cache.synced()).await.unwrap();
    // After three panics of the sweep, which take less than a second.
    let behind = health.wait_for(|health| matches!(health, Health::Behind(_)));
    assert!(timeout(Duration::from_secs(10), behind).await.is_err());
}
