//! Several caches over one store: a client may turn from one to another without going back in time.

use setpoint_gateway::store::cache::{AtLeast, Health, Start};
use setpoint_model::Revision;
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;

use super::world::{
    cache, cache_with, config_maps, impatient, next_error, reach, revisions, set, take, unset,
    watch, watch_after,
};
use crate::cases::soon;
use crate::{Lagging, Subject};

/// Checks S1, S2.
pub async fn a_watch_resumes_on_another_replica(subject: impl Subject) {
    let store = subject.store();
    let lagging = Lagging::new(store.clone());
    let ahead = cache(&store).await;
    let behind = cache_with(&(lagging.clone() as _), impatient()).await;
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

/// Checks I3: a restart of the gateway sets off no storm of lists.
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
pub async fn a_cache_that_was_left_far_behind_starts_its_watchers_again(subject: impl Subject) {
    restart_after(subject, 2_100, false).await;
}

/// Checks S2, S9.
pub async fn a_cache_whose_store_was_compacted_starts_its_watchers_again(subject: impl Subject) {
    restart_after(subject, 20, true).await;
}

/// A cache that loses its store, and finds so much changed that it reads everything anew.
async fn restart_after(subject: impl Subject, writes: usize, compacted: bool) {
    let store = subject.store();
    let lagging = Lagging::new(store.clone());
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
