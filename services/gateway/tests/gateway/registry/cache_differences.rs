//! Tests of Events about differences between the cache and its store.

use std::sync::Arc;
use std::time::Duration;

use setpoint_gateway::registry::Registry;
use setpoint_model::Key;
use setpoint_proto::core::{ConfigMap, Event, Namespace};
use setpoint_store::cache::{AtLeast, Cache, Filter, Settings};
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{config_map, enveloped, key_of, kind};
use setpoint_store::{Memory, Store as _, Write, keys};
use tokio::time::{sleep, timeout};

const TIMEOUT: Duration = Duration::from_secs(600);

/// Checks S8.
#[tokio::test(start_paused = true)]
async fn a_difference_is_recorded_as_an_event() {
    let store = FaultyStore::new(Arc::new(Memory::default()));
    let cache = Cache::start(store.clone(), Settings::default());
    cache.synced().await;
    let registry = Registry::new(store.clone(), cache.clone());
    for name in ["default", "setpoint-system"] {
        let mut namespace = Namespace::default();
        namespace.metadata.name = name.into();
        namespace.metadata.uid = format!("uid of {name}");
        let key = keys::object(kind::<Namespace>(), &Key::new("", name));
        let write = Write::create(key, enveloped(&namespace, None));
        store.commit(write).await.unwrap();
    }
    let namespaces = Filter::all(kind::<Namespace>(), "");
    cache.list(&namespaces, AtLeast::Newest).await.unwrap();
    let recorded = registry.record_differences("gateway-0");
    let seen = async {
        store.lose_changes();
        let value = enveloped(&config_map("web", "1"), None);
        let write = Write::create(key_of::<ConfigMap>("web"), value);
        store.commit(write).await.unwrap();
        let filter = Filter::all(kind::<Event>(), "default");
        loop {
            let events = cache.list(&filter, AtLeast::Newest).await.unwrap();
            if let Some(event) = events.items.first() {
                return event.decode().unwrap();
            }
            sleep(Duration::from_secs(1)).await;
        }
    };
    let event = tokio::select! {
        () = recorded => unreachable!("it runs until dropped"),
        event = timeout(TIMEOUT, seen) => event.unwrap(),
    };
    let event: &Event = event.downcast_ref().unwrap();
    assert_eq!(event.reason, "CacheInconsistent");
    assert_eq!(event.involved_object.uid, "uid of setpoint-system");
    let message =
        "The cache of gateway-0 was reloaded: at revision 4 it had 0 configmaps, its store 1";
    assert_eq!(event.message, message);
}
