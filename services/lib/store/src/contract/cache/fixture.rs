//! Caches over a store, and operations of the tests on them.

use std::sync::Arc;
use std::time::Duration;

use crate::cache::{Cache, Event, Filter, Settings, Start, Watch, WatchSpec};
use crate::{Store, Write};
use futures::{StreamExt as _, TryStreamExt as _};
use setpoint_model::Revision;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::{ApiError, EventType, Resource};
use tokio::time::sleep;

use crate::contract::objects::{NAMESPACE, config_map, enveloped, key_of, kind, pod};
use crate::contract::soon;

/// Settings with a read timeout that is long enough for a busy machine.
pub fn settings() -> Settings {
    Settings {
        read_timeout: Duration::from_secs(60),
        ..Settings::default()
    }
}

/// Settings with a short read timeout, for reads that should time out.
pub fn short_timeout() -> Settings {
    Settings {
        read_timeout: Duration::from_millis(200),
        ..Settings::default()
    }
}

pub async fn cache(store: &Arc<dyn Store>) -> Cache {
    cache_with(store, settings()).await
}

pub async fn cache_with(store: &Arc<dyn Store>, settings: Settings) -> Cache {
    let cache = Cache::start(store.clone(), settings);
    soon("the cache to sync", cache.synced()).await;
    cache
}

/// Waits until a cache has reached a revision, independently of its read timeout.
pub async fn reach(cache: &Cache, revision: Revision) {
    let there = async {
        while cache.reached() < revision {
            sleep(Duration::from_millis(1)).await;
        }
    };
    soon(revision, there).await;
}

/// Creates or replaces an object.
pub async fn put<T: Resource>(store: &Arc<dyn Store>, object: &T) -> Revision {
    let key = key_of::<T>(&object.meta().name);
    let value = enveloped(object, None);
    let write = match store.get(&key).await.unwrap() {
        Some(entry) => Write::update(key, entry.revision, value),
        None => Write::create(key, value),
    };
    store.commit(write).await.unwrap()
}

pub async fn set(store: &Arc<dyn Store>, name: &str, value: &str) -> Revision {
    put(store, &config_map(name, value)).await
}

pub async fn bind(store: &Arc<dyn Store>, name: &str, node: &str) -> Revision {
    put(store, &pod(name, node)).await
}

pub async fn unset<T: Resource>(store: &Arc<dyn Store>, name: &str) -> Revision {
    let key = key_of::<T>(name);
    let entry = store.get(&key).await.unwrap().unwrap();
    store
        .commit(Write::delete(key, entry.revision))
        .await
        .unwrap()
}

pub fn config_maps() -> Filter {
    Filter::all(kind::<ConfigMap>(), NAMESPACE)
}

pub fn pods_of(node: &str) -> Filter {
    let fields = Fields::parse(&format!("spec.nodeName={node}")).unwrap();
    Filter::new(kind::<Pod>(), "", Selector::everything(), &fields).unwrap()
}

pub async fn watch(cache: &Cache, filter: Filter, start: Start) -> Result<Watch, ApiError> {
    let spec = WatchSpec {
        filter,
        start,
        bookmarks: true,
    };
    cache.watch(spec).await
}

pub async fn watch_after(cache: &Cache, after: Revision) -> Watch {
    watch(cache, config_maps(), Start::After(after))
        .await
        .unwrap()
}

/// Takes the next `count` events.
pub async fn take(watch: &mut Watch, count: usize) -> Vec<Event> {
    soon("events", watch.take(count).try_collect())
        .await
        .unwrap()
}

/// Waits for the error at the end of a watch.
pub async fn next_error(watch: &mut Watch) -> ApiError {
    let mut errors = watch.filter_map(|event| async { event.err() }).boxed();
    soon("an error", errors.next()).await.unwrap()
}

/// Returns type, name and revision of each event.
pub fn summary(events: &[Event]) -> Vec<(EventType, &str, Revision)> {
    let mut summaries = Vec::new();
    for Event { r#type, object, .. } in events {
        summaries.push((*r#type, object.key.name.as_str(), object.revision));
    }
    summaries
}

pub fn revisions(events: &[Event]) -> Vec<Revision> {
    events.iter().map(|event| event.object.revision).collect()
}
