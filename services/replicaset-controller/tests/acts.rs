//! What the replicaset-controller writes, to a gateway in this process.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic, and so may what it is made of"
)]

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Client, Receipt, Reconciler, Recorder, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Revision, Target, owner};
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::{Container, Namespace};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason, core};
use setpoint_replicaset_controller::{Action, Pod, ReplicaSets, Set, World, status};

const NAMESPACE: &str = "production";

/// A set in a gateway, and the controller that acts on it.
struct Acts {
    gateway: Client,
    sets: ReplicaSets,
    set: ReplicaSet,
    _serving: InProcess,
}

impl Acts {
    async fn begin() -> Self {
        let serving = in_process::start().await;
        let settings = client::Settings {
            address: serving.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "replicaset-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let set = gateway.create(&web()).await.unwrap().object;
        let readers = (gateway.informer::<Set>(), gateway.informer::<Pod>());
        let events = Recorder::new(gateway.clone(), "replicaset-controller", "0");
        Self {
            sets: ReplicaSets {
                sets: readers.0.reader(),
                pods: readers.1.reader(),
                events,
            },
            gateway,
            set,
            _serving: serving,
        }
    }

    fn world(&self) -> World {
        World {
            set: Arc::new(Set::of(self.set.clone())),
            pods: Vec::new(),
            neighbours: Default::default(),
            now: Timestamp::UNIX_EPOCH,
            seed: 7,
        }
    }

    async fn act(&self, action: Action) -> Result<Receipt, ApiError> {
        let world = self.world();
        self.sets.act(&self.gateway, &world, &action).await
    }

    async fn create(&self, name: &str) -> Result<Receipt, ApiError> {
        self.act(Action::Create { name: name.into() }).await
    }

    async fn pod(&self, name: &str) -> Result<core::Pod, ApiError> {
        self.gateway.get(&Key::new(NAMESPACE, name)).await
    }

    async fn target(&self, name: &str) -> Target {
        Target::of(&Pod::of(self.pod(name).await.unwrap()).meta)
    }

    async fn relabel(&self, name: &str) {
        let patch = serde_json::json!({"metadata": {"labels": {"app": "other"}}});
        let key = Key::new(NAMESPACE, name);
        self.gateway
            .patch::<core::Pod>(&key, "", patch)
            .await
            .unwrap();
    }
}

fn web() -> ReplicaSet {
    let mut set = ReplicaSet::default();
    (set.metadata.name, set.metadata.namespace) = ("web".into(), NAMESPACE.into());
    let template = &mut set.spec.template;
    template.metadata.labels.insert("app".into(), "web".into());
    template
        .metadata
        .annotations
        .insert("note".into(), "kept".into());
    template.spec.containers.push(Container {
        name: "main".into(),
        image: "web".into(),
        ..Default::default()
    });
    set.spec.selector = Some(LabelSelector {
        match_labels: template.metadata.labels.clone(),
        ..Default::default()
    });
    set
}

fn is_ours(pod: &core::Pod, set: &ReplicaSet) -> bool {
    owner::controller_of(&pod.metadata).is_some_and(|owner| owner.uid == set.metadata.uid)
}

#[tokio::test]
async fn a_pod_is_made_from_the_template() {
    let acts = Acts::begin().await;
    let receipt = acts.create("web-a").await.unwrap();
    let pod = acts.pod("web-a").await.unwrap();
    assert_eq!(receipt.revision, Revision::of(&pod.metadata));
    assert!(is_ours(&pod, &acts.set));
    assert_eq!(pod.metadata.generate_name, "web-");
    assert_eq!(pod.metadata.labels["app"], "web");
    assert_eq!(pod.metadata.annotations["note"], "kept");
    assert_eq!(pod.spec.containers[0].image, "web");
}

/// Checks R1, R3: what an earlier attempt has made is found, what others have made is not taken for it.
#[tokio::test]
async fn a_create_that_is_repeated_finds_its_pod() {
    let acts = Acts::begin().await;
    let first = acts.create("web-a").await.unwrap();
    assert_eq!(acts.create("web-a").await.unwrap(), first);
    let pod = acts.target("web-a").await;
    acts.act(Action::Release(pod)).await.unwrap();
    let refused = acts.create("web-a").await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

/// Checks R6, R7.
#[tokio::test]
async fn only_the_version_that_was_seen_is_adopted_released_and_deleted() {
    let acts = Acts::begin().await;
    acts.create("web-a").await.unwrap();
    let owned = acts.target("web-a").await;
    acts.act(Action::Release(owned.clone())).await.unwrap();
    assert!(!is_ours(&acts.pod("web-a").await.unwrap(), &acts.set));
    let orphan = acts.target("web-a").await;
    acts.act(Action::Adopt(orphan.clone())).await.unwrap();
    assert!(is_ours(&acts.pod("web-a").await.unwrap(), &acts.set));

    let ranked = acts.target("web-a").await;
    acts.relabel("web-a").await;
    for action in [
        Action::Release(owned),
        Action::Adopt(orphan),
        Action::Delete(ranked.clone()),
    ] {
        let refused = acts.act(action.clone()).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Conflict, "{action:?}");
    }
    let newest = acts.target("web-a").await;
    acts.act(Action::Delete(newest)).await.unwrap();
    assert_eq!(
        acts.pod("web-a").await.unwrap_err().reason,
        Reason::NotFound
    );
    assert_eq!(acts.act(Action::Delete(ranked)).await, Ok(Receipt::none()));
}

/// Checks R7.
#[tokio::test]
async fn a_set_that_is_gone_adopts_nothing() {
    let acts = Acts::begin().await;
    acts.create("web-a").await.unwrap();
    acts.act(Action::Release(acts.target("web-a").await))
        .await
        .unwrap();
    let key = Key::new(NAMESPACE, "web");
    acts.gateway
        .delete::<ReplicaSet>(&key, Default::default(), None)
        .await
        .unwrap();
    acts.gateway.create(&web()).await.unwrap();
    let refused = acts.act(Action::Adopt(acts.target("web-a").await)).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}

#[tokio::test]
async fn a_status_is_written_over_the_version_that_was_seen() {
    let acts = Acts::begin().await;
    let world = acts.world();
    let told = status(&world, &Default::default()).unwrap();
    acts.sets
        .update_status(&acts.gateway, &world, told.clone())
        .await
        .unwrap();
    let set: ReplicaSet = acts.gateway.get(&Key::new(NAMESPACE, "web")).await.unwrap();
    assert_eq!(set.status, told);
    let stale = acts
        .sets
        .update_status(&acts.gateway, &world, Default::default())
        .await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
}
