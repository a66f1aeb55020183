//! A store with caches over it, and short words for what the tests do to them.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use setpoint_gateway::store::cache::{Cache, Event, Filter, Settings, Start, Watch, WatchSpec};
use setpoint_gateway::store::{Store, Write};
use setpoint_model::Revision;
use setpoint_model::selector::{Fields, Selector};
use setpoint_proto::core::{ConfigMap, Pod};
use setpoint_proto::{ApiError, EventType, Resource};
use tokio::time::sleep;

use crate::cases::soon;
use crate::objects::{NAMESPACE, config_map, enveloped, key_of, kind, pod};

/// Settings under which a read waits for as long as a busy machine takes.
pub fn settings() -> Settings {
    Settings {
        patience: Duration::from_secs(60),
        ..Settings::default()
    }
}

/// Settings under which a test need not wait for long for what should not come.
pub fn impatient() -> Settings {
    Settings {
        patience: Duration::from_millis(200),
        ..Settings::default()
    }
}

pub async fn cache(store: &Arc<dyn Store>) -> Cache {
    cache_with(store, settings()).await
}

pub async fn cache_with(store: &Arc<dyn Store>, settings: Settings) -> Cache {
    let cache = Cache::start(store.clone(), settings);
    soon("the cache", cache.synced()).await;
    cache
}

/// Waits until a cache has come so far, however impatient it is.
pub async fn reach(cache: &Cache, revision: Revision) {
    let there = async {
        while cache.reached() < revision {
            sleep(Duration::from_millis(1)).await;
        }
    };
    soon(revision, there).await;
}

/// Writes an object, whatever stands there.
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

/// The next `count` events.
pub async fn take(watch: &mut Watch, count: usize) -> Vec<Event> {
    soon("events", watch.take(count).try_collect())
        .await
        .unwrap()
}

/// What comes next is an error.
pub async fn next_error(watch: &mut Watch) -> ApiError {
    let mut errors = watch.filter_map(|event| async { event.err() }).boxed();
    soon("an error", errors.next()).await.unwrap()
}

/// Events as short as they can be told.
pub fn told(events: &[Event]) -> Vec<(EventType, &str, Revision)> {
    let mut told = Vec::new();
    for Event { r#type, object, .. } in events {
        told.push((*r#type, object.key.name.as_str(), object.revision));
    }
    told
}

pub fn revisions(events: &[Event]) -> Vec<Revision> {
    events.iter().map(|event| event.object.revision).collect()
}
