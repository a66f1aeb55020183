//! Tests of the writes of the replicaset-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Client, Outcome, Receipt, Reconciler, Recorder, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Revision, Target, owner};
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::{Container, Namespace, ReplicationController};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason, core};
use setpoint_replicaset_controller::{
    Action, ReplicaSetView, ReplicaSets, Replicated, ReplicationControllerView,
    ReplicationControllers, World, plan, status,
};
use setpoint_workload::PodView;

const NAMESPACE: &str = "production";

/// A ReplicaSet in a gateway, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    sets: ReplicaSets,
    set: ReplicaSet,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let (server, gateway) = start_gateway().await;
        let set = gateway.create(&web()).await.unwrap().object().unwrap();
        let readers = (
            gateway.informer::<ReplicaSetView>(),
            gateway.informer::<PodView>(),
        );
        let events = Recorder::new(gateway.clone(), "replicaset-controller", "0");
        Self {
            sets: ReplicaSets {
                sets: readers.0.reader(),
                pods: readers.1.reader(),
                events,
            },
            gateway,
            set,
            _gateway: server,
        }
    }

    fn world(&self) -> World {
        World {
            set: Arc::new(ReplicaSetView::of(self.set.clone())),
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
        Target::of(&PodView::of(self.pod(name).await.unwrap()).meta)
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

/// Starts a gateway with the namespace of the tests.
async fn start_gateway() -> (InProcess, Client) {
    let server = in_process::start().await;
    let settings = client::Settings {
        address: server.url.clone(),
        ..Default::default()
    };
    let gateway = Client::connect(&settings, "replicaset-controller").unwrap();
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.into();
    gateway.create(&namespace).await.unwrap();
    let mut account = core::ServiceAccount::default();
    account.metadata.namespace = NAMESPACE.into();
    account.metadata.name = "default".into();
    gateway.create(&account).await.unwrap();
    (server, gateway)
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
async fn create_makes_a_pod_from_the_template() {
    let fixture = Fixture::start().await;
    let receipt = fixture.create("web-a").await.unwrap();
    let pod = fixture.pod("web-a").await.unwrap();
    assert_eq!(receipt.revision, Revision::of(&pod.metadata));
    assert!(is_ours(&pod, &fixture.set));
    assert_eq!(pod.metadata.generate_name, "web-");
    assert_eq!(pod.metadata.labels["app"], "web");
    assert_eq!(pod.metadata.annotations["note"], "kept");
    assert_eq!(pod.spec.containers[0].image, "web");
}

/// Checks R1, R3.
#[tokio::test]
async fn a_repeated_create_returns_the_pod_unless_it_has_another_owner() {
    let fixture = Fixture::start().await;
    let first = fixture.create("web-a").await.unwrap();
    assert_eq!(fixture.create("web-a").await.unwrap(), first);
    let pod = fixture.target("web-a").await;
    fixture.act(Action::Release(pod)).await.unwrap();
    let refused = fixture.create("web-a").await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

/// Checks R6, R7.
#[tokio::test]
async fn adopt_release_and_delete_require_the_observed_version() {
    let fixture = Fixture::start().await;
    fixture.create("web-a").await.unwrap();
    let owned = fixture.target("web-a").await;
    fixture.act(Action::Release(owned.clone())).await.unwrap();
    assert!(!is_ours(&fixture.pod("web-a").await.unwrap(), &fixture.set));
    let orphan = fixture.target("web-a").await;
    fixture.act(Action::Adopt(orphan.clone())).await.unwrap();
    assert!(is_ours(&fixture.pod("web-a").await.unwrap(), &fixture.set));

    let ranked = fixture.target("web-a").await;
    fixture.relabel("web-a").await;
    for action in [
        Action::Release(owned),
        Action::Adopt(orphan),
        Action::Delete(ranked.clone()),
    ] {
        let refused = fixture.act(action.clone()).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Conflict, "{action:?}");
    }
    let newest = fixture.target("web-a").await;
    fixture.act(Action::Delete(newest)).await.unwrap();
    assert_eq!(
        fixture.pod("web-a").await.unwrap_err().reason,
        Reason::NotFound
    );
    assert_eq!(
        fixture.act(Action::Delete(ranked)).await,
        Ok(Receipt::none())
    );
}

/// Checks R7.
#[tokio::test]
async fn adopt_fails_if_the_set_was_replaced_by_another_of_its_name() {
    let fixture = Fixture::start().await;
    fixture.create("web-a").await.unwrap();
    fixture
        .act(Action::Release(fixture.target("web-a").await))
        .await
        .unwrap();
    let key = Key::new(NAMESPACE, "web");
    fixture
        .gateway
        .delete::<ReplicaSet>(&key, Default::default(), None)
        .await
        .unwrap();
    fixture.gateway.create(&web()).await.unwrap();
    let refused = fixture
        .act(Action::Adopt(fixture.target("web-a").await))
        .await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}

#[tokio::test]
async fn update_status_requires_the_observed_version() {
    let fixture = Fixture::start().await;
    let world = fixture.world();
    let reported = status(&world, &Default::default()).unwrap();
    fixture
        .sets
        .update_status(&fixture.gateway, &world, reported.clone())
        .await
        .unwrap();
    let set: ReplicaSet = fixture
        .gateway
        .get(&Key::new(NAMESPACE, "web"))
        .await
        .unwrap();
    assert_eq!(set.status, reported);
    let stale = fixture
        .sets
        .update_status(&fixture.gateway, &world, Default::default())
        .await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
}

#[tokio::test]
async fn a_replication_controller_owns_its_pods_and_has_events_and_a_status() {
    let (_server, gateway) = start_gateway().await;
    let web = web();
    let mut object = ReplicationController {
        metadata: web.metadata,
        ..Default::default()
    };
    object.spec.template = Some(web.spec.template);
    let object = gateway.create(&object).await.unwrap().object().unwrap();
    let controllers = ReplicationControllers {
        sets: gateway.informer::<ReplicationControllerView>().reader(),
        pods: gateway.informer::<PodView>().reader(),
        events: Recorder::new(gateway.clone(), "replication-controller", "0"),
    };
    let world = World {
        set: Arc::new(ReplicationControllerView::of(object.clone())).into_set(),
        pods: Vec::new(),
        neighbours: Default::default(),
        now: Timestamp::UNIX_EPOCH,
        seed: 7,
    };
    let plan = plan(&world);
    let create = &plan.steps[0].action;
    for _ in 0..2 {
        let created = controllers.act(&gateway, &world, create).await;
        controllers.record(&world, create, &created);
    }
    let key = Key::new(NAMESPACE, create.pod());
    let pod: core::Pod = gateway.get(&key).await.unwrap();
    let owners = pod.metadata.owner_references;
    assert_eq!(owners, [owner::reference_to(&object)]);
    assert_eq!(owners[0].api_version, "v1");

    for change in [Action::Release, Action::Adopt] {
        let pod: core::Pod = gateway.get(&key).await.unwrap();
        let change = change(Target::of(&PodView::of(pod).meta));
        controllers.act(&gateway, &world, &change).await.unwrap();
    }
    let pod: core::Pod = gateway.get(&key).await.unwrap();
    assert_eq!(owners, pod.metadata.owner_references);

    let reported = ReplicationControllers::status(&world, &Outcome::default()).unwrap();
    let written = controllers.update_status(&gateway, &world, reported).await;
    written.unwrap();
    let key = Key::new(NAMESPACE, "web");
    let object: ReplicationController = gateway.get(&key).await.unwrap();
    assert_eq!(object.status.observed_generation, 1);

    controllers.events.finish().await;
    let events = gateway.list::<core::Event>(&Default::default()).await;
    let events = events.unwrap().items;
    assert_eq!(events.len(), 1);
    let (event, about) = (&events[0], &events[0].involved_object);
    assert_eq!(
        (&*about.kind, &*about.name),
        ("ReplicationController", "web")
    );
    assert_eq!((&*event.reason, event.count), ("SuccessfulCreate", 2));
    assert_eq!(event.source.component, "replication-controller");
}
