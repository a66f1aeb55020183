//! Custom kinds that go and return.

use futures::StreamExt as _;
use serde_json::json;
use setpoint_codec::envelope;
use setpoint_model::Key;
use setpoint_proto::Reason;
use setpoint_proto::apiextensions::CustomResourceDefinition;
use setpoint_store::cache::{AtLeast, Filter, Start, WatchSpec};
use setpoint_store::contract::objects::{enveloped, kind};
use setpoint_store::{Store as _, Write, keys};
use tokio::time::timeout;

use crate::panics::{LONG, config_maps, create, start, watch};

fn definition() -> CustomResourceDefinition {
    let json = json!({
        "metadata": { "name": "tabs.example.com" },
        "spec": {
            "group": "example.com",
            "names": { "plural": "tabs", "kind": "Tab" },
            "scope": "Namespaced",
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
        "status": { "conditions": [{ "type": "Established", "status": "True" }] },
    });
    serde_json::from_value(json).unwrap()
}

/// Checks DG11: its objects are there at once, and only watches that are about it expire.
#[tokio::test(start_paused = true)]
async fn a_kind_that_returns_has_its_objects_and_expires_its_own_watches_only() {
    let (store, cache) = start().await;
    let newest = async || {
        cache.list(&config_maps(), AtLeast::Newest).await.unwrap();
    };
    let name = Key::new("", "tabs.example.com");
    let path = keys::object(kind::<CustomResourceDefinition>(), &name);
    let define = Write::create(path.clone(), enveloped(&definition(), None));
    let defined = store.commit(define.clone()).await.unwrap();
    newest().await;
    let tabs = cache.kinds().by_resource("tabs.example.com").unwrap();
    let all = Filter::all(tabs, "");
    let spec = WatchSpec {
        filter: all.clone(),
        start: Start::Now,
        bookmarks: false,
    };
    let mut own = cache.watch(spec).await.unwrap();
    let mut others = watch(&cache).await;
    let (_, mut of_all) = cache.watch_all(None).await.unwrap();

    let tab = tabs.from_json(br#"{"metadata":{"name":"a","namespace":"production"}}"#);
    let tab = tab.unwrap();
    let value = envelope::of_object(&*tab, &tab.encode(), None);
    let key = keys::object(tabs, &Key::new("production", "a"));
    store.commit(Write::create(key, value)).await.unwrap();
    store.commit(Write::delete(path, defined)).await.unwrap();
    store.commit(define).await.unwrap();
    newest().await;
    let list = cache.list(&all, AtLeast::Newest).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let ended = timeout(LONG, own.next()).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err().reason, Reason::Expired);
    let ended = timeout(LONG, of_all.next()).await.unwrap();
    assert_eq!(ended.unwrap_err().reason, Reason::Expired);
    create(&store, "web").await;
    let event = timeout(LONG, others.next()).await.unwrap().unwrap();
    assert_eq!(event.unwrap().object.key.name, "web");
}
