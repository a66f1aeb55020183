//! The Rust client `kube`: typed and dynamic objects, server-side apply, a watcher, and a controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::discovery::{Discovery, Scope};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt as _, watcher};
use setpoint_tests::Cluster;
use tokio::time::timeout;

use crate::kube_client::kube_client;

const DEADLINE: Duration = Duration::from_secs(30);

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("a".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn kube_reads_writes_and_watches_objects() {
    let cluster = Cluster::bare();
    let client = kube_client(&cluster);
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let events = watcher(
        config_maps.clone(),
        watcher::Config::default().streaming_lists(),
    );
    let mut applied = Box::pin(events.default_backoff().applied_objects());
    let created = config_maps
        .create(&PostParams::default(), &config_map("one", "b"))
        .await
        .unwrap();
    until(&mut applied, "one", "b").await;
    let mut changed = created.clone();
    changed.data = config_map("one", "c").data;
    config_maps
        .replace("one", &PostParams::default(), &changed)
        .await
        .unwrap();
    until(&mut applied, "one", "c").await;
    let conflict = config_maps
        .replace("one", &PostParams::default(), &changed)
        .await;
    assert!(matches!(conflict, Err(kube::Error::Api(status)) if status.code == 409));
    let apply = PatchParams::apply("kube").force();
    config_maps
        .patch("one", &apply, &Patch::Apply(config_map("one", "d")))
        .await
        .unwrap();
    until(&mut applied, "one", "d").await;
    let listed = config_maps
        .list(&ListParams::default().limit(1))
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1);
    let metadata = config_maps.get_metadata("one").await.unwrap();
    assert!(
        metadata
            .metadata
            .managed_fields
            .is_some_and(|fields| !fields.is_empty())
    );
}

async fn until(
    applied: &mut (impl futures::Stream<Item = Result<ConfigMap, watcher::Error>> + Unpin),
    name: &str,
    value: &str,
) {
    let expected = config_map(name, value).data;
    let found = async {
        while let Some(object) = applied.try_next().await.expect("the watch goes on") {
            if object.metadata.name.as_deref() == Some(name) && object.data == expected {
                return;
            }
        }
        panic!("the watch ended");
    };
    timeout(DEADLINE, found).await.expect("the change is seen");
}

#[tokio::test]
async fn kube_discovers_every_kind_that_it_can_list() {
    let cluster = Cluster::bare();
    let client = kube_client(&cluster);
    let discovery = Discovery::new(client.clone())
        .run_aggregated()
        .await
        .unwrap();
    let mut listed = 0;
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation("list") {
                continue;
            }
            let objects: Api<DynamicObject> = match capabilities.scope {
                Scope::Cluster => Api::all_with(client.clone(), &resource),
                Scope::Namespaced => Api::default_namespaced_with(client.clone(), &resource),
            };
            objects.list(&ListParams::default()).await.unwrap();
            listed += 1;
        }
    }
    assert!(listed > 50, "{listed} kinds");
}

/// The reconciler copies `a` to `b`.
#[tokio::test]
async fn a_controller_of_kube_reconciles() {
    let cluster = Cluster::bare();
    let client = kube_client(&cluster);
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let controller = Controller::new(
        config_maps.clone(),
        watcher::Config::default().labels("copy=yes"),
    );
    let context = Arc::new(config_maps.clone());
    let running = tokio::spawn(
        controller
            .run(
                copy,
                |_, _, _| Action::requeue(Duration::from_secs(1)),
                context,
            )
            .for_each(|_| async {}),
    );
    let mut labelled = config_map("one", "b");
    labelled.metadata.labels = Some(BTreeMap::from([("copy".to_owned(), "yes".to_owned())]));
    config_maps
        .create(&PostParams::default(), &labelled)
        .await
        .unwrap();
    let copied = async {
        loop {
            let data = config_maps
                .get("one")
                .await
                .unwrap()
                .data
                .unwrap_or_default();
            if data.get("b") == data.get("a") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(DEADLINE, copied)
        .await
        .expect("the controller copies");
    running.abort();
}

async fn copy(object: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>) -> Result<Action, kube::Error> {
    let data = object.data.clone().unwrap_or_default();
    let patch = serde_json::json!({ "data": { "b": data.get("a") } });
    let name = object.metadata.name.clone().unwrap_or_default();
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(Action::await_change())
}
