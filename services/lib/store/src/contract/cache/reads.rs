//! Reads, which are at least as new as asked.

use crate::cache::AtLeast;
use setpoint_model::{Key, Revision};
use setpoint_proto::Reason;
use setpoint_proto::core::ConfigMap;

use super::fixture::{cache, cache_with, config_maps, reach, set, short_timeout, unset};
use crate::contract::objects::{NAMESPACE, kind};
use crate::contract::{FaultyStore, Subject};

fn key(name: &str) -> Key {
    Key::new(NAMESPACE, name)
}

/// Checks S7.
pub async fn a_consistent_read_sees_every_acknowledged_write(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    for round in 0..50 {
        let name = format!("web-{round}");
        let written = set(&store, &name, "1").await;
        let read = cache
            .get(kind::<ConfigMap>(), &key(&name), AtLeast::Newest)
            .await
            .unwrap();
        assert_eq!(read.unwrap().revision, written);
        let list = cache
            .list(&config_maps(), AtLeast::Revision(written))
            .await
            .unwrap();
        assert_eq!(list.items.len(), round + 1);
        assert!(list.revision >= written);
    }
}

/// Checks S7, DG10: a list does not show deleted objects. Otherwise two Pods of one name can run on two nodes
/// (kubernetes/kubernetes#59848).
pub async fn consistent_reads_of_a_lagging_replica_are_answered_by_the_store(
    subject: impl Subject,
) {
    let store = subject.store();
    set(&store, "web", "1").await;
    let lagging = FaultyStore::new(store.clone());
    let replica = cache_with(&(lagging.clone() as _), short_timeout()).await;
    lagging.hold();
    let created = set(&store, "new", "1").await;
    let deleted = unset::<ConfigMap>(&store, "web").await;
    for _ in 0..2 {
        let list = replica.list(&config_maps(), AtLeast::Newest).await.unwrap();
        let names: Vec<_> = list.items.iter().map(|item| &*item.key.name).collect();
        assert_eq!((names, list.revision), (vec!["new"], deleted));
        let get = async |name| {
            let key = key(name);
            let read = replica.get(kind::<ConfigMap>(), &key, AtLeast::Newest);
            read.await.unwrap().map(|object| object.revision)
        };
        assert_eq!(get("web").await, None);
        assert_eq!(get("new").await, Some(created));
        lagging.release();
        reach(&replica, deleted).await;
    }
}

/// Checks S7.
pub async fn a_read_of_any_revision_does_not_wait_for_the_store(subject: impl Subject) {
    let store = subject.store();
    set(&store, "web", "1").await;
    let lagging = FaultyStore::new(store.clone());
    let replica = cache(&(lagging.clone() as _)).await;
    lagging.hold();
    unset::<ConfigMap>(&store, "web").await;
    let list = replica.list(&config_maps(), AtLeast::Any).await.unwrap();
    assert_eq!(list.items.len(), 1);
}

/// Checks S1.
pub async fn a_list_at_a_future_revision_times_out(subject: impl Subject) {
    let cache = cache_with(&subject.store(), short_timeout()).await;
    let future = Revision::from_raw(1_000_000);
    let refused = cache
        .list(&config_maps(), AtLeast::Revision(future))
        .await
        .unwrap_err();
    assert_eq!(refused.reason, Reason::Timeout);
    assert_eq!(refused.causes()[0].reason, "ResourceVersionTooLarge");
}

/// Checks S1.
pub async fn a_page_at_an_old_revision_is_read_from_the_store(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    for name in ["a", "b", "c"] {
        set(&store, name, "1").await;
    }
    let past = store.revision().await.unwrap();
    set(&store, "d", "1").await;
    unset::<ConfigMap>(&store, "c").await;

    let page = cache
        .page(&config_maps(), past, Some(&key("a")), 1)
        .await
        .unwrap();
    assert_eq!(page.items[0].key, key("b"));
    assert_eq!((page.last.clone(), page.remaining), (Some(key("b")), 1));
    let rest = cache
        .page(&config_maps(), past, page.last.as_ref(), 0)
        .await
        .unwrap();
    assert_eq!(rest.items.len(), 1);
    assert_eq!(rest.items[0].key, key("c"));

    subject.compact(store.revision().await.unwrap()).await;
    let refused = cache.page(&config_maps(), past, None, 0).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Expired);
}
