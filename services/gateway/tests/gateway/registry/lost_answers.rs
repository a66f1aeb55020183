//! Writes whose answers are lost between the gateway and a real etcd, while another gateway changes the same object.

use std::sync::Arc;

use serde_json::json;
use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::{DeleteOptions, OwnerReference};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};
use setpoint_store::etcd::{self, Etcd};
use setpoint_store::{Range, Store, keys};
use setpoint_testkit::Link;

use crate::registry::gateway::TestGateway;

/// Two gateways over one etcd: the first through a link that can lose answers.
struct Pair {
    first: TestGateway,
    second: TestGateway,
    link: Link,
    _etcd: setpoint_testkit::Etcd,
}

async fn connect(url: String) -> Arc<dyn Store> {
    let settings = etcd::Settings {
        endpoints: vec![url],
        ..etcd::Settings::default()
    };
    Arc::new(Etcd::connect(&settings).await.unwrap())
}

impl Pair {
    async fn start() -> Self {
        let etcd = setpoint_testkit::Etcd::start().await;
        let link = Link::to(&etcd.url());
        let second = TestGateway::start_over(connect(etcd.url()).await).await;
        let first = TestGateway::over(connect(link.url()).await).await;
        Self {
            first,
            second,
            link,
            _etcd: etcd,
        }
    }

    /// Calls the first gateway, whose answer from etcd is lost after `meanwhile`.
    async fn lose<T>(
        &self,
        call: impl Future<Output = T>,
        meanwhile: impl Future<Output = ()>,
    ) -> T {
        self.link.hold_answers();
        let then = async {
            meanwhile.await;
            self.link.cut_open_connections();
        };
        tokio::join!(call, then).0
    }

    /// Returns the names of all ConfigMaps.
    async fn names(&self) -> Vec<String> {
        let prefix = keys::prefix(kind::<ConfigMap>(), NAMESPACE);
        let page = self.second.store.list(Range::all(prefix)).await.unwrap();
        let names = page.entries.into_iter();
        let names = names.filter_map(|entry| Some(entry.key.rsplit_once('/')?.1.to_owned()));
        names.collect()
    }

    /// Adds a label through the second gateway, as a controller does.
    async fn label(&self, name: &str) {
        let body = json!({ "metadata": { "labels": { "handled": "yes" } } });
        let labelled = self
            .second
            .patch::<ConfigMap>(name, Type::Merge, body)
            .await;
        labelled.unwrap();
    }

    async fn seen(&self, wanted: impl Fn(&ConfigMap) -> bool) -> ConfigMap {
        self.second.seen(wanted).await
    }
}

/// Checks DG1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_with_a_generated_name_makes_one_object() {
    let pair = Pair::start().await;
    let mut order = ConfigMap::default();
    order.metadata.generate_name = "order-".into();
    let create = pair.first.create(&order);
    let label = async {
        let made = pair
            .seen(|made| made.metadata.generate_name == "order-")
            .await;
        pair.label(&made.metadata.name).await;
    };
    let created = pair.lose(create, label).await.unwrap();
    assert_eq!(
        pair.names().await,
        std::slice::from_ref(&created.metadata.name)
    );
    let stored: ConfigMap = pair.second.get(&created.metadata.name).await.unwrap();
    assert_eq!(stored.metadata.uid, created.metadata.uid);
    assert_eq!(stored.metadata.labels["handled"], "yes");
}

/// Checks DG1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_does_not_conflict_with_its_own_object() {
    let pair = Pair::start().await;
    let web = config_map("web", "1");
    let label = async {
        pair.second.there::<ConfigMap>("web").await;
        pair.label("web").await;
    };
    let created = pair.lose(pair.first.create(&web), label).await.unwrap();
    let stored: ConfigMap = pair.second.get("web").await.unwrap();
    assert_eq!(stored.metadata.uid, created.metadata.uid);

    let taken = pair
        .second
        .delete::<ConfigMap>("web", DeleteOptions::default());
    let again = async {
        taken.await.unwrap();
        pair.second.create(&web).await.unwrap();
    };
    again.await;
    let refused = pair.first.create(&web).await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

fn owner(name: &str) -> OwnerReference {
    OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: name.into(),
        uid: name.into(),
        ..Default::default()
    }
}

/// Checks DG1.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_json_patch_is_applied_once() {
    let pair = Pair::start().await;
    let mut web = config_map("web", "1");
    web.metadata.owner_references.push(owner("a"));
    pair.second.create(&web).await.unwrap();
    pair.first.there::<ConfigMap>("web").await;
    let (path, value) = ("/metadata/ownerReferences/-", owner("b"));
    let body = json!([{ "op": "add", "path": path, "value": value }]);
    let patch = pair.first.patch::<ConfigMap>("web", Type::Json, body);
    let label = async {
        pair.seen(|map| map.metadata.owner_references.len() == 2)
            .await;
        pair.label("web").await;
    };
    pair.lose(patch, label).await.unwrap();
    let stored: ConfigMap = pair.second.get("web").await.unwrap();
    let owners: Vec<_> = stored
        .metadata
        .owner_references
        .iter()
        .map(|owner| &*owner.uid)
        .collect();
    assert_eq!(owners, ["a", "b"]);
}

/// Checks DG1: as the controller of a StatefulSet does, the second gateway creates the object again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_does_not_delete_the_object_that_follows() {
    let pair = Pair::start().await;
    let web = config_map("web", "1");
    let old = pair.second.create(&web).await.unwrap();
    pair.first.there::<ConfigMap>("web").await;
    let delete = pair
        .first
        .delete::<ConfigMap>("web", DeleteOptions::default());
    let mut uid = String::new();
    let again = async {
        pair.second.gone::<ConfigMap>("web").await;
        uid = pair.second.create(&web).await.unwrap().metadata.uid;
    };
    let deleted = pair.lose(delete, again).await.unwrap();
    assert!(deleted.gone);
    let deleted = deleted.response.into_object().unwrap();
    assert_eq!(deleted.meta().uid, old.metadata.uid);
    let stored: ConfigMap = pair.second.get("web").await.unwrap();
    assert_eq!(stored.metadata.uid, uid);
}

fn is_unknown<T>(outcome: Result<T, ApiError>) -> bool {
    outcome.is_err_and(|error| error.reason == Reason::Timeout)
}

/// Checks DG1: the mutation is not made again, whatever has become of it.
#[tokio::test]
async fn a_write_with_an_unknown_outcome_is_reported_as_such_and_not_repeated() {
    let gateway = TestGateway::start().await;
    gateway.store.forget_outcomes();
    let mut order = ConfigMap::default();
    order.metadata.generate_name = "order-".into();
    assert!(is_unknown(gateway.create(&order).await));
    let map = gateway.seen(|_: &ConfigMap| true).await;
    let name = map.metadata.name.as_str();
    let body = json!({ "data": { "count": "1" } });
    assert!(is_unknown(
        gateway.patch::<ConfigMap>(name, Type::Merge, body).await
    ));
    gateway
        .seen(|map: &ConfigMap| map.data.contains_key("count"))
        .await;
    let deletion = gateway.delete::<ConfigMap>(name, DeleteOptions::default());
    assert!(is_unknown(deletion.await));
    gateway.gone::<ConfigMap>(name).await;
    let prefix = keys::prefix(kind::<ConfigMap>(), NAMESPACE);
    let left = gateway.store.list(Range::all(prefix)).await.unwrap();
    assert_eq!(left.entries.len(), 0, "{:?}", Key::new(NAMESPACE, name));
    let web = config_map("web", "1");
    assert!(is_unknown(gateway.create(&web).await));
    let refused = gateway.create(&web).await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}
