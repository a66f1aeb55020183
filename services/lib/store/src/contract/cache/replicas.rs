//! Several caches over one store: a client that changes to another one never sees an older state.

use crate::cache::{AtLeast, Health, Start};
use setpoint_model::Revision;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;

use super::fixture::{
    cache, cache_with, config_maps, next_error, reach, revisions, set, short_timeout, take, unset,
    watch, watch_after,
};
use crate::contract::soon;
use crate::contract::{FaultyStore, Subject};

/// Checks S1, S2.
pub async fn a_watch_resumes_on_another_replica(subject: impl Subject) {
    let store = subject.store();
    let lagging = FaultyStore::new(store.clone());
    let ahead = cache(&store).await;
    let behind = cache_with(&(lagging.clone() as _), short_timeout()).await;
    let start = ahead.reached();
    lagging.hold();
    let mut first = watch_after(&ahead, start).await;
    let written = [set(&store, "web", "1").await, set(&store, "web", "2").await];
    assert_eq!(revisions(&take(&mut first, 2).await), written);

    let refused = watch(&behind, config_maps(), Start::After(written[0]))
        .await
        .err()
        .unwrap();
    assert_eq!(refused.reason, Reason::Timeout);
    lagging.release();
    reach(&behind, written[0]).await;
    let mut second = watch_after(&behind, written[0]).await;
    assert_eq!(revisions(&take(&mut second, 1).await), written[1..]);

    let never = watch(
        &ahead,
        config_maps(),
        Start::After(Revision::from_raw(1_000_000)),
    )
    .await;
    assert_eq!(never.err().unwrap().reason, Reason::Expired);
}

/// Checks I3: after a restart of the gateway, clients resume their watches without a list.
pub async fn a_watch_resumes_on_a_replica_that_started_later(subject: impl Subject) {
    let store = subject.store();
    let start = store.revision().await.unwrap();
    let created = set(&store, "web", "1").await;
    let deleted = unset::<ConfigMap>(&store, "web").await;
    let late = cache(&store).await;
    let mut watcher = watch_after(&late, start).await;
    assert_eq!(revisions(&take(&mut watcher, 2).await), [created, deleted]);
}

/// Checks S1, S2.
pub async fn a_cache_that_missed_many_revisions_expires_its_watchers(subject: impl Subject) {
    restart_after(subject, 2_100, false).await;
}

/// Checks S2, S9.
pub async fn a_cache_whose_store_was_compacted_expires_its_watchers(subject: impl Subject) {
    restart_after(subject, 20, true).await;
}

/// Cuts a cache off from its store until it must relist.
async fn restart_after(subject: impl Subject, writes: usize, compacted: bool) {
    let store = subject.store();
    let lagging = FaultyStore::new(store.clone());
    let replica = cache(&(lagging.clone() as _)).await;
    let mut watcher = watch_after(&replica, replica.reached()).await;
    let mut health = replica.health();
    lagging.cut();
    for value in 0..writes {
        set(&store, "web", &value.to_string()).await;
    }
    let newest = store.revision().await.unwrap();
    if compacted {
        subject.compact(newest).await;
    }
    lagging.release();
    assert_eq!(next_error(&mut watcher).await.reason, Reason::Expired);
    let following = health.wait_for(|health| *health == Health::Following);
    soon("the cache", following).await.unwrap();
    let list = replica.list(&config_maps(), AtLeast::Newest).await.unwrap();
    assert_eq!((list.items.len(), list.items[0].revision), (1, newest));
}
