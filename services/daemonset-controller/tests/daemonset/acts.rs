//! Tests of the daemonset-controller against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Claim, Client, Controller, Receipt, Reconciler, Recorder, View, client};
use setpoint_daemonset_controller::{
    Action, DaemonSetView, DaemonSets, Found, Informers, World, status,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Meta, Target, owner, placement};
use setpoint_proto::apps::{ControllerRevision, DaemonSet};
use setpoint_proto::core::{Container, Namespace, Node, Pod, ServiceAccount, Taint};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_workload::history::{HASH_LABEL, Write};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "production";

/// A DaemonSet in a gateway, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    sets: DaemonSets,
    set: DaemonSet,
    _gateway: InProcess,
}

fn informers(gateway: &Client) -> Informers {
    Informers {
        sets: gateway.informer(),
        nodes: gateway.informer(),
        pods: gateway.informer(),
        revisions: gateway.informer(),
    }
}

fn key(name: &str) -> Key {
    Key::new(NAMESPACE, name)
}

fn log() -> DaemonSet {
    let mut set = DaemonSet::default();
    (set.metadata.name, set.metadata.namespace) = ("log".into(), NAMESPACE.into());
    let cause = "kubernetes.io/change-cause";
    set.metadata
        .annotations
        .insert(cause.into(), "first".into());
    let template = &mut set.spec.template;
    template.metadata.labels.insert("app".into(), "log".into());
    template.spec.containers.push(Container {
        name: "main".into(),
        image: "log:1".into(),
        ..Default::default()
    });
    set.spec.selector = Some(LabelSelector {
        match_labels: template.metadata.labels.clone(),
        ..Default::default()
    });
    set
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "daemonset-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        account.metadata.namespace = NAMESPACE.into();
        account.metadata.name = "default".into();
        gateway.create(&account).await.unwrap();
        let set = gateway.create(&log()).await.unwrap().object().unwrap();
        let events = Recorder::new(gateway.clone(), "daemonset-controller", "0");
        Self {
            sets: DaemonSets::new(&informers(&gateway), events),
            gateway,
            set,
            _gateway: server,
        }
    }

    fn world(&self) -> World {
        let set = DaemonSetView::of(self.set.clone());
        World {
            revision_name: set.revision_name(|_| None),
            set: Arc::new(set),
            nodes: Vec::new(),
            pods: Vec::new(),
            revisions: Vec::new(),
            backoffs: HashMap::new(),
            now: Timestamp::UNIX_EPOCH,
            seed: 7,
        }
    }

    async fn act(&self, action: Action) -> Result<Receipt, ApiError> {
        let world = self.world();
        self.sets.act(&self.gateway, &world, &action).await
    }

    async fn create(&self, name: &str, node: &str) -> Result<Receipt, ApiError> {
        let (name, node) = (name.to_owned(), node.to_owned());
        let hash = "abc".to_owned();
        self.act(Action::Create { name, node, hash }).await
    }

    async fn record(&self) -> Result<Receipt, ApiError> {
        let name = self.world().revision_name;
        self.act(Action::Revision(Write::Create { name, number: 1 }))
            .await
    }

    async fn get<T: Resource>(&self, name: &str) -> Result<T, ApiError> {
        self.gateway.get(&key(name)).await
    }

    async fn target<T: Resource>(&self, name: &str) -> Target {
        Target::of(&Meta::of(self.get::<T>(name).await.unwrap().meta()))
    }

    async fn add_node(&self, name: &str, taint: &str) {
        let mut node = Node::default();
        node.metadata.name = name.into();
        node.spec.taints.push(Taint {
            key: taint.into(),
            effect: "NoSchedule".into(),
            ..Default::default()
        });
        node.spec.taints.retain(|taint| !taint.key.is_empty());
        self.gateway.create(&node).await.unwrap();
    }

    async fn delete_node(&self, name: &str) {
        let key = Key::new("", name);
        let delete = self.gateway.delete::<Node>(&key, Default::default(), None);
        delete.await.unwrap();
    }

    async fn patch<T: Resource>(&self, key: &Key, patch: Value) {
        self.gateway.patch::<T>(key, "", patch).await.unwrap();
    }

    async fn pods(&self) -> Vec<Pod> {
        let all = ListOptions {
            namespace: NAMESPACE.into(),
            ..Default::default()
        };
        self.gateway.list::<Pod>(&all).await.unwrap().items
    }
}

#[tokio::test]
async fn a_pod_is_created_for_its_node() {
    let fixture = Fixture::start().await;
    fixture.create("log-a", "a").await.unwrap();
    let pod: Pod = fixture.get("log-a").await.unwrap();
    assert_eq!(placement::target_node(&pod.spec), Some("a"));
    assert_eq!(pod.spec.node_name, "", "the scheduler binds it");
    let labels = [
        ("app", "log"),
        (HASH_LABEL, "abc"),
        ("pod-template-generation", "1"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(pod.metadata.labels, BTreeMap::from(labels));
    assert_eq!(pod.metadata.generate_name, "log-");
    let controller = owner::controller_of(&pod.metadata).unwrap();
    assert_eq!(controller.uid, fixture.set.metadata.uid);
    let tolerations = pod.spec.tolerations.iter();
    assert!(
        tolerations
            .clone()
            .all(|one| one.toleration_seconds.is_none())
    );
    assert_eq!(tolerations.count(), 6);
}

/// Checks R1: as for ReplicaSets.
#[tokio::test]
async fn a_repeated_create_takes_the_pod_only_for_the_same_node() {
    let fixture = Fixture::start().await;
    let first = fixture.create("log-a", "a").await.unwrap();
    assert_eq!(fixture.create("log-a", "a").await, Ok(first));
    let refused = fixture.create("log-a", "b").await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

#[tokio::test]
async fn a_revision_is_recorded_renumbered_adopted_and_deleted() {
    let fixture = Fixture::start().await;
    let first = fixture.record().await.unwrap();
    assert_eq!(fixture.record().await, Ok(first));
    let name = fixture.world().revision_name;
    let revision: ControllerRevision = fixture.get(&name.name).await.unwrap();
    let data: Value = serde_json::from_slice(&revision.data.raw).unwrap();
    assert_eq!(data["spec"]["template"]["$patch"], "replace");
    assert_eq!(revision.metadata.labels[HASH_LABEL], name.hash);
    let cause = &revision.metadata.annotations["kubernetes.io/change-cause"];
    assert_eq!((cause.as_str(), revision.revision), ("first", 1));

    let seen = || fixture.target::<ControllerRevision>(&name.name);
    let release = Action::Revision(Write::Claim(Claim::Release(seen().await)));
    fixture.act(release).await.unwrap();
    let adopt = Action::Revision(Write::Claim(Claim::Adopt(seen().await)));
    fixture.act(adopt).await.unwrap();
    let stale = seen().await;
    let renumber =
        |revision: Target, number| Action::Revision(Write::Renumber { revision, number });
    fixture.act(renumber(stale.clone(), 5)).await.unwrap();
    let conflict = fixture.act(renumber(stale, 6)).await.unwrap_err();
    assert_eq!(conflict.reason, Reason::Conflict);
    let renumbered: ControllerRevision = fixture.get(&name.name).await.unwrap();
    assert_eq!((renumbered.revision, &renumbered.data), (5, &revision.data));
    fixture
        .act(Action::Revision(Write::Delete(seen().await)))
        .await
        .unwrap();
    let gone = fixture.get::<ControllerRevision>(&name.name).await;
    assert_eq!(gone.unwrap_err().reason, Reason::NotFound);
}

/// Checks R6, R7: as for ReplicaSets.
#[tokio::test]
async fn adopt_release_and_delete_require_the_observed_version() {
    let fixture = Fixture::start().await;
    fixture.create("log-a", "a").await.unwrap();
    let stale = fixture.target::<Pod>("log-a").await;
    let patch = json!({"metadata": {"labels": {"seen": "no"}}});
    fixture.patch::<Pod>(&key("log-a"), patch).await;
    let delete = |pod: Target| Action::Delete {
        pod,
        node: "a".into(),
        found: Found::Alive,
    };
    for action in [
        Action::Pod(Claim::Release(stale.clone())),
        delete(stale.clone()),
    ] {
        let refused = fixture.act(action.clone()).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Conflict, "{action:?}");
    }
    let newest = fixture.target::<Pod>("log-a").await;
    fixture.act(delete(newest)).await.unwrap();
    let gone = fixture.get::<Pod>("log-a").await;
    assert_eq!(gone.unwrap_err().reason, Reason::NotFound);
    assert_eq!(fixture.act(delete(stale)).await, Ok(Receipt::none()));
}

#[tokio::test]
async fn a_pod_of_a_node_that_vanished_is_deleted_without_a_grace_period() {
    let fixture = Fixture::start().await;
    fixture.create("log-a", "a").await.unwrap();
    fixture.add_node("a", "").await;
    let pod: Pod = fixture.get("log-a").await.unwrap();
    let (gateway, bound) = (&fixture.gateway, key("log-a"));
    gateway.bind(&bound, "a", &pod.metadata.uid).await.unwrap();
    let lost = |pod: Target| Action::Delete {
        pod,
        node: "a".into(),
        found: Found::Lost,
    };
    let seen = fixture.target::<Pod>("log-a").await;
    let kept = fixture.act(lost(seen.clone())).await;
    assert_eq!(
        kept,
        Ok(Receipt::none()),
        "only the cache has lost the node"
    );
    fixture.delete_node("a").await;
    fixture.act(lost(seen)).await.unwrap();
    let gone = fixture.get::<Pod>("log-a").await;
    assert_eq!(gone.unwrap_err().reason, Reason::NotFound);
}

#[tokio::test]
async fn update_status_requires_the_observed_version() {
    let fixture = Fixture::start().await;
    let world = fixture.world();
    let reported = status(&world, &Default::default()).unwrap();
    let report = || {
        let reported = reported.clone();
        fixture
            .sets
            .update_status(&fixture.gateway, &world, reported)
    };
    report().await.unwrap();
    let set: DaemonSet = fixture.get("log").await.unwrap();
    assert_eq!(set.status, reported);
    assert_eq!(report().await.unwrap_err().reason, Reason::Conflict);
}

/// Waits until `check` returns true, at most a minute.
async fn eventually(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let limit = Duration::from_secs(60);
    let done = async {
        while !check().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(limit, done).await.expect(what);
}

#[tokio::test]
async fn the_controller_follows_nodes_and_templates() {
    let fixture = Fixture::start().await;
    for (node, taint) in [("a", ""), ("b", ""), ("c", "gpu")] {
        fixture.add_node(node, taint).await;
    }
    let informers = informers(&fixture.gateway);
    let events = Recorder::new(fixture.gateway.clone(), "daemonset-controller", "0");
    let reconciler = DaemonSets::new(&informers, events);
    let controller = Controller::new("daemonset-controller", reconciler, fixture.gateway.clone());
    let controller = informers.trigger(controller).unelected();
    let stop = CancellationToken::new();
    let running = tokio::spawn(controller.run("daemonset-controller-0", stop.clone()));

    let nodes = async || {
        let pods = fixture.pods().await;
        let nodes = pods
            .iter()
            .filter_map(|pod| placement::target_node(&pod.spec));
        let mut nodes: Vec<_> = nodes.map(str::to_owned).collect();
        nodes.sort();
        nodes
    };
    eventually("two nodes have a Pod", async || nodes().await == ["a", "b"]).await;
    let untaint = json!({"spec": {"taints": null}});
    fixture.patch::<Node>(&Key::new("", "c"), untaint).await;
    eventually("the third has one, too", async || {
        nodes().await == ["a", "b", "c"]
    })
    .await;

    let container = json!({"name": "main", "image": "log:2"});
    let update = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
    fixture.patch::<DaemonSet>(&key("log"), update).await;
    eventually("all Pods are new", async || {
        let pods = fixture.pods().await;
        let mut images = pods.iter().map(|pod| pod.spec.containers[0].image.as_str());
        pods.len() == 3 && images.all(|image| image == "log:2")
    })
    .await;
    eventually("the status says so", async || {
        let DaemonSet { status, .. } = fixture.get("log").await.unwrap();
        let counts = (
            status.updated_number_scheduled,
            status.desired_number_scheduled,
        );
        (status.observed_generation, counts) == (2, (3, 3))
    })
    .await;
    fixture.delete_node("b").await;
    eventually("the Pod of a deleted node goes", async || {
        nodes().await == ["a", "c"]
    })
    .await;
    stop.cancel();
    running.await.unwrap().unwrap();
}
