//! One object's past can be followed back to where the store's history ends.

use setpoint_gateway::store::cache::{Before, Cache, Settings};
use setpoint_model::{Key, Revision};
use setpoint_proto::core::ConfigMap;

use super::world::{cache, cache_with, set, settings, unset};
use crate::Subject;
use crate::objects::{NAMESPACE, kind};

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
pub async fn each_version_of_an_object_leads_to_the_one_before_it(subject: impl Subject) {
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
pub async fn the_end_of_an_object_is_known_from_the_log_or_found_in_the_store(
    subject: impl Subject,
) {
    let store = subject.store();
    let witness = cache(&store).await;
    for n in 0..20 {
        set(&store, "other", &n.to_string()).await;
    }
    set(&store, "web", "1").await;
    let last = set(&store, "web", "2").await;
    let deleted = unset::<ConfigMap>(&store, "web").await;
    for n in 0..50 {
        set(&store, "other", &format!("again {n}")).await;
    }
    // It begins when the object is gone, and has it not even in its log.
    let now = Settings {
        history: 0,
        ..settings()
    };
    let latecomer = cache_with(&store, now).await;
    for cache in [&witness, &latecomer] {
        let gone = cache.farewell(kind::<ConfigMap>(), &web()).await.unwrap();
        let gone = gone.unwrap();
        assert_eq!(gone.revision, deleted);
        match before(cache, deleted).await {
            Before::Version(version) => assert_eq!(version.revision, last),
            other => panic!("{other:?}"),
        }
    }
    subject.compact(store.revision().await.unwrap()).await;
    let never = Key::new(NAMESPACE, "never");
    let found = latecomer.farewell(kind::<ConfigMap>(), &never).await;
    assert!(found.unwrap().is_none());
}
