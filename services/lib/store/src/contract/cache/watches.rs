//! Watches: each change once and in order, or else an error.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{AtLeast, Settings, Start};
use crate::{Expect, Precondition, Store, Write};
use futures::StreamExt as _;
use futures::future::join_all;
use setpoint_model::Revision;
use setpoint_proto::EventType::{Added, Bookmark, Deleted, Modified};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::{Cause, Reason};

use super::fixture::{
    bind, cache, cache_with, config_maps, next_error, pods_of, put, reach, revisions, set,
    settings, summary, take, unset, watch, watch_after,
};
use crate::contract::Subject;
use crate::contract::objects::{NAMESPACE, config_map, enveloped, key_of};
use crate::contract::soon;

/// Writes 10 objects concurrently, each 10 times; returns all revisions in order.
async fn write_many(store: &Arc<dyn Store>) -> Vec<Revision> {
    let writers = (0..10).map(|writer| async move {
        let mut written = Vec::new();
        for value in 0..10 {
            written.push(set(store, &format!("web-{writer}"), &value.to_string()).await);
        }
        written
    });
    let mut written: Vec<_> = join_all(writers).await.concat();
    written.sort_unstable();
    written
}

/// Checks S2, I12.
pub async fn a_watch_sends_the_initial_state_before_changes(subject: impl Subject) {
    let store = subject.store();
    let first = set(&store, "a", "1").await;
    let second = set(&store, "b", "1").await;
    let cache = cache(&store).await;
    let start = Start::Initial(AtLeast::Newest);
    let mut watch = watch(&cache, config_maps(), start).await.unwrap();
    let third = set(&store, "a", "2").await;
    let events = take(&mut watch, 4).await;
    let expected = [
        (Added, "a", first),
        (Added, "b", second),
        (Bookmark, "", second),
        (Modified, "a", third),
    ];
    assert_eq!(summary(&events), expected);
    let ends: Vec<_> = events
        .iter()
        .map(|event| event.initial_events_end)
        .collect();
    assert_eq!(ends, [false, false, true, false]);
}

/// Checks S1, S2, S3.
pub async fn every_watcher_gets_every_change_once_and_in_order(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let start = cache.reached();
    let watchers = join_all((0..5).map(|_| watch_after(&cache, start))).await;
    let written = write_many(&store).await;
    for mut watcher in watchers {
        assert_eq!(revisions(&take(&mut watcher, written.len()).await), written);
    }
}

/// Checks S1, S2, S3.
pub async fn a_watch_resumes_from_any_revision(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let written = write_many(&store).await;
    for ended in [0, 1, 42, 98] {
        let mut rest = watch_after(&cache, written[ended]).await;
        let rest = take(&mut rest, written.len() - ended - 1).await;
        assert_eq!(revisions(&rest), written[ended + 1..]);
    }
}

/// Checks S3.
pub async fn a_bookmark_never_runs_ahead_of_a_change(subject: impl Subject) {
    let store = subject.store();
    let often = Settings {
        bookmark_interval: Duration::from_millis(1),
        ..settings()
    };
    let cache = cache_with(&store, often).await;
    let mut watcher = watch_after(&cache, cache.reached()).await;
    let writing = async {
        write_many(&store).await;
        bind(&store, "not-watched", "").await;
    };
    let reading = async {
        let (mut changes, mut bookmarks, mut reached) = (0, 0, Revision::default());
        while changes < 100 || bookmarks == 0 {
            let event = watcher.next().await.unwrap().unwrap();
            let revision = event.object.revision;
            match event.r#type {
                Bookmark => bookmarks += 1,
                _ => changes += 1,
            }
            assert!(reached < revision, "{reached} came before {revision}");
            reached = revision;
        }
    };
    soon(
        "changes and bookmarks",
        futures::future::join(writing, reading),
    )
    .await;
}

/// Checks L7: from the bookmark a new leader knows that it has seen all writes of its predecessor.
pub async fn every_watcher_gets_a_bookmark_at_once_when_a_lease_changes_hands(
    subject: impl Subject,
) {
    let store = subject.store();
    let lease = |holder: &str| {
        let mut lease = Lease::default();
        lease.metadata.namespace = NAMESPACE.into();
        lease.metadata.name = "demo".into();
        lease.spec.holder_identity = Some(holder.into());
        lease
    };
    put(&store, &lease("a")).await;
    let never = Settings {
        bookmark_interval: Duration::from_secs(3600),
        ..settings()
    };
    let cache = cache_with(&store, never).await;
    let mut watcher = watch_after(&cache, cache.reached()).await;
    put(&store, &lease("a")).await;
    let elected = put(&store, &lease("b")).await;
    let events = take(&mut watcher, 1).await;
    assert_eq!(summary(&events), [(Bookmark, "", elected)]);
}

/// Checks S2, I2.
pub async fn a_watcher_behind_the_log_expires_and_the_others_continue(subject: impl Subject) {
    let store = subject.store();
    let short = Settings {
        log_records: 20,
        ..settings()
    };
    let cache = cache_with(&store, short).await;
    let start = cache.reached();
    let mut slow = watch_after(&cache, start).await;
    let mut quick = watch_after(&cache, start).await;
    for value in 0..50 {
        let written = set(&store, "web", &value.to_string()).await;
        assert_eq!(revisions(&take(&mut quick, 1).await), [written]);
    }
    assert_eq!(next_error(&mut slow).await.reason, Reason::Expired);
    assert!(slow.next().await.is_none());
    let late = watch(&cache, config_maps(), Start::After(start))
        .await
        .err()
        .unwrap();
    assert_eq!(late.reason, Reason::Expired);
}

/// Checks I2: the events of a stalled client are dropped, and with them the objects.
pub async fn a_watch_expires_if_its_client_stalls(subject: impl Subject) {
    let store = subject.store();
    set(&store, "a", "1").await;
    set(&store, "b", "1").await;
    let short = Settings {
        log_records: 5,
        stall: Duration::from_millis(40),
        ..settings()
    };
    let cache = cache_with(&store, short).await;
    let start = Start::Initial(AtLeast::Newest);
    let mut stalled = watch(&cache, config_maps(), start).await.unwrap();
    take(&mut stalled, 1).await;
    let listed = cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    let kept = Arc::downgrade(&listed.items[1]);
    drop(listed);
    unset::<ConfigMap>(&store, "b").await;
    let gone = async {
        while kept.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // The log refers to the object until it is full of newer records.
    for value in 0..10 {
        set(&store, "a", &value.to_string()).await;
    }
    soon("the object to be dropped", gone).await;
    assert_eq!(next_error(&mut stalled).await.reason, Reason::Expired);
}

/// Checks S2.
pub async fn a_watcher_without_changes_does_not_expire(subject: impl Subject) {
    let store = subject.store();
    let short = Settings {
        log_records: 20,
        ..settings()
    };
    let cache = cache_with(&store, short).await;
    let start = cache.reached();
    let mut quiet = watch(&cache, pods_of("node-1"), Start::After(start))
        .await
        .unwrap();
    for value in 0..50 {
        set(&store, "web", &value.to_string()).await;
    }
    let bound = bind(&store, "pod", "node-1").await;
    assert_eq!(summary(&take(&mut quiet, 1).await), [(Added, "pod", bound)]);
}

/// Checks S3.
pub async fn a_deletion_carries_its_own_revision_and_cause(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let mut watcher = watch_after(&cache, cache.reached()).await;
    let created = set(&store, "web", "1").await;
    let cause = Cause {
        writer: "kubectl".into(),
        ..Default::default()
    };
    let delete = Write::delete(key_of::<ConfigMap>("web"), created).because(cause.clone());
    let deleted = store.commit(delete).await.unwrap();
    let events = take(&mut watcher, 2).await;
    assert_eq!(
        summary(&events),
        [(Added, "web", created), (Deleted, "web", deleted)]
    );
    assert_eq!(events[1].object.cause(), Some(cause));
    let last = events[1].object.decode().unwrap();
    assert_eq!(last.meta().resource_version, deleted.to_string());
    assert_eq!(last.meta().labels["value"], "1");
}

/// Clients must leave a gateway that shuts down.
pub async fn watches_of_a_closed_cache_end_as_unavailable(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let mut watcher = watch_after(&cache, cache.reached()).await;
    set(&store, "web", "1").await;
    unset::<ConfigMap>(&store, "web").await;
    take(&mut watcher, 2).await;
    cache.close();
    assert_eq!(
        next_error(&mut watcher).await.reason,
        Reason::ServiceUnavailable
    );
}

/// Creates the objects `a` and `b` in one revision, and returns it.
async fn set_two(store: &Arc<dyn Store>) -> Revision {
    let second = Precondition {
        key: key_of::<ConfigMap>("b"),
        expect: Expect::Absent,
        put: Some(enveloped(&config_map("b", "1"), None)),
    };
    let value = enveloped(&config_map("a", "1"), None);
    let write = Write::create(key_of::<ConfigMap>("a"), value);
    store
        .commit(write.with_preconditions([second]))
        .await
        .unwrap()
}

/// Checks DG12: a watch whose stream ends between two events of one revision resumes after that revision.
pub async fn a_watch_that_ends_within_a_revision_misses_none_of_its_changes(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let small = Settings {
        log_records: 1,
        ..settings()
    };
    let small = cache_with(&store, small).await;
    let mut watch = watch_after(&cache, cache.reached()).await;
    let both = set_two(&store).await;
    let events = take(&mut watch, 2).await;
    let expected = [(Added, "a", both), (Added, "b", both)];
    assert_eq!(summary(&events), expected);
    for cache in [&cache, &small] {
        let rest = take(&mut watch_after(cache, both).await, 1).await;
        assert_eq!(summary(&rest), expected[1..]);
        let (_, mut all) = cache.watch_all(Some(both)).await.unwrap();
        let rest = soon("the rest", all.next()).await.unwrap();
        let names: Vec<_> = rest.iter().map(|write| &*write.new.key.name).collect();
        assert_eq!(names, ["b"]);
    }

    let later = set(&store, "a", "2").await;
    let rest = take(&mut watch_after(&cache, both).await, 2).await;
    assert_eq!(revisions(&rest), [both, later]);
    reach(&small, later).await;
    let refused = super::fixture::watch(&small, config_maps(), Start::After(both)).await;
    let refused = refused.err().map(|error| error.reason);
    assert_eq!(refused, Some(Reason::Expired), "it may have missed `b`");
    let next = set(&store, "a", "3").await;
    let rest = take(&mut watch_after(&cache, later).await, 1).await;
    assert_eq!(revisions(&rest), [next]);
}
