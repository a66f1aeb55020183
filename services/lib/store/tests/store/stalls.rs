//! Watches of the store that are open but deliver nothing.

use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_store::cache::{AtLeast, Cache, Health};
use setpoint_store::contract::objects::{NAMESPACE, kind};
use tokio::time::{Instant, timeout};

use crate::panics::{LONG, config_maps, create, start};

/// Waits until the cache is not ready since its watch delivers nothing.
async fn until_stuck(cache: &Cache) {
    let mut health = cache.health();
    let stuck = |health: &Health| matches!(health, Health::Behind(why) if why.contains("stuck"));
    timeout(LONG, health.wait_for(stuck))
        .await
        .unwrap()
        .unwrap();
}

/// Checks DG10.
#[tokio::test(start_paused = true)]
async fn a_watch_that_delivers_nothing_is_noticed_within_seconds_and_begun_again() {
    let (store, cache) = start().await;
    store.stall_open_watches();
    let (began, created) = (Instant::now(), create(&store, "web").await);
    until_stuck(&cache).await;
    assert!(began.elapsed() < Duration::from_secs(8));
    timeout(LONG, cache.synced()).await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(10));
    let list = cache.list(&config_maps(), AtLeast::Any).await.unwrap();
    assert_eq!(list.items[0].revision, created);
}

/// Checks DG10: while no watch delivers anything, the cache is not ready, and consistent reads are answered by the
/// store.
#[tokio::test(start_paused = true)]
async fn a_cache_without_a_working_watch_is_not_ready_but_reads_are_consistent() {
    let (store, cache) = start().await;
    store.hold();
    create(&store, "web").await;
    until_stuck(&cache).await;
    let following = timeout(LONG, cache.synced()).await;
    assert!(following.is_err(), "each new watch is stuck, too");
    let created = create(&store, "other").await;
    let began = Instant::now();
    let list = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!((list.items.len(), list.revision), (2, created));
    let key = Key::new(NAMESPACE, "other");
    let read = cache.get(kind::<ConfigMap>(), &key, AtLeast::Newest).await;
    assert_eq!(read.unwrap().unwrap().revision, created);
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "a cache that is behind is not waited for"
    );
    store.release();
    timeout(LONG, cache.synced()).await.unwrap();
}

/// Checks DG10: a quiet store has no changes to deliver.
#[tokio::test(start_paused = true)]
async fn a_watch_of_a_quiet_store_is_not_stuck() {
    let (_store, cache) = start().await;
    let mut health = cache.health();
    let behind = health.wait_for(|health| *health != Health::Following);
    assert!(timeout(LONG, behind).await.is_err());
}
