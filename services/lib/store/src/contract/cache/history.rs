//! The history of one object, back to the compacted revision.

use crate::cache::{Before, Cache, Settings};
use setpoint_model::{Key, Revision};
use setpoint_proto::core::ConfigMap;

use super::fixture::{cache, cache_with, set, settings, unset};
use crate::contract::Subject;
use crate::contract::objects::{NAMESPACE, kind};

fn web() -> Key {
    Key::new(NAMESPACE, "web")
}

async fn before(cache: &Cache, revision: Revision) -> Before {
    cache
        .before(kind::<ConfigMap>(), &web(), revision)
        .await
        .unwrap()
}

/// Checks S11.
pub async fn the_version_before_a_revision_is_found_until_it_is_compacted(subject: impl Subject) {
    let store = subject.store();
    let cache = cache(&store).await;
    let first = set(&store, "web", "1").await;
    set(&store, "other", "1").await;
    let second = set(&store, "web", "2").await;
    match before(&cache, second).await {
        Before::Version(version) => assert_eq!(version.revision, first),
        other => panic!("{other:?}"),
    }
    assert!(matches!(before(&cache, first).await, Before::Nothing));
    subject.compact(second).await;
    assert!(matches!(before(&cache, second).await, Before::Forgotten));
}

/// Checks S11.
pub async fn the_tombstone_of_an_object_is_found_in_the_log_or_in_the_store(subject: impl Subject) {
    let store = subject.store();
    let early = cache(&store).await;
    for n in 0..20 {
        set(&store, "other", &n.to_string()).await;
    }
    set(&store, "web", "1").await;
    let last = set(&store, "web", "2").await;
    let deleted = unset::<ConfigMap>(&store, "web").await;
    for n in 0..50 {
        set(&store, "other", &format!("again {n}")).await;
    }
    // It starts after the deletion, and its log does not include it.
    let now = Settings {
        history: 0,
        ..settings()
    };
    let late = cache_with(&store, now).await;
    for cache in [&early, &late] {
        let gone = cache.tombstone(kind::<ConfigMap>(), &web()).await.unwrap();
        let gone = gone.unwrap();
        assert_eq!(gone.revision, deleted);
        match before(cache, deleted).await {
            Before::Version(version) => assert_eq!(version.revision, last),
            other => panic!("{other:?}"),
        }
    }
    subject.compact(store.revision().await.unwrap()).await;
    let never = Key::new(NAMESPACE, "never");
    let found = late.tombstone(kind::<ConfigMap>(), &never).await;
    assert!(found.unwrap().is_none());
}
