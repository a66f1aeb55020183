//! Tests of the writes of the two controllers, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use setpoint_controller::{Client, Receipt, Reconciler, Recorder, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Target, condition};
use setpoint_node_lifecycle_controller::{
    Action, EvictionAction, EvictionWorld, Evictions, Health, LeaseView, Lifecycle, NodeView,
    Nodes, PodView, World, plan, plan_eviction,
};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{
    Container, Event, Namespace, Node, NodeCondition, Pod, PodCondition, ServiceAccount, Taint,
};
use setpoint_proto::meta::Quantity;
use setpoint_proto::{ApiError, Reason};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// A node with a Lease and a ready Pod in a gateway, and the reconcilers that act on them.
struct Fixture {
    gateway: Client,
    nodes: Nodes,
    evictions: Evictions,
    events: Recorder,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "node-lifecycle-controller").unwrap();
        for name in ["kube-node-lease", "default"] {
            let mut namespace = Namespace::default();
            namespace.metadata.name = name.into();
            match gateway.create(&namespace).await {
                Err(error) if error.reason != Reason::AlreadyExists => panic!("{error}"),
                _ => {}
            }
        }
        let mut account = ServiceAccount::default();
        (account.metadata.namespace, account.metadata.name) = ("default".into(), "default".into());
        let created = gateway.create(&account).await;
        assert!(created.is_ok() || created.unwrap_err().reason == Reason::AlreadyExists);
        gateway.create(&node()).await.unwrap();
        gateway.create(&lease()).await.unwrap();
        let events = Recorder::new(gateway.clone(), "test", "0");
        let (nodes, pods) = (gateway.informer(), gateway.informer());
        let leases = gateway.informer();
        let readers = (nodes.reader(), leases.reader(), pods.reader());
        let fixture = Self {
            nodes: Nodes::new(readers, Lifecycle::default(), events.clone()),
            evictions: Evictions::new(pods.reader(), nodes.reader(), events.clone()),
            events,
            gateway,
            _gateway: server,
        };
        fixture.create_pod().await;
        fixture
    }

    async fn create_pod(&self) {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("default".into(), "web".into());
        pod.spec.node_name = "a".into();
        pod.spec.containers.push(Container {
            name: "main".into(),
            image: "web".into(),
            ..Default::default()
        });
        let mut pod = self.gateway.create(&pod).await.unwrap().object().unwrap();
        pod.status.phase = "Running".into();
        pod.status.conditions.push(PodCondition {
            r#type: "Ready".into(),
            status: "True".into(),
            ..Default::default()
        });
        self.gateway.update_status(&pod).await.unwrap();
    }

    async fn node(&self) -> Node {
        self.gateway.get(&Key::new("", "a")).await.unwrap()
    }

    async fn pod(&self) -> Result<Pod, ApiError> {
        self.gateway.get(&Key::new("default", "web")).await
    }

    /// Returns what a controller sees that has not heard of the node for an hour.
    async fn world(&self) -> World {
        let node = NodeView::of(self.node().await);
        let lease = self.lease().await.map(LeaseView::of);
        let mut health = Health::default();
        health.observe(&node, lease.as_ref(), Duration::ZERO);
        let (signs, silent_for) = health.last("a", Duration::from_secs(3600));
        let pod = PodView::of(self.pod().await.unwrap());
        World {
            node: Arc::new(node),
            signs,
            silent_for,
            outage: false,
            turn: Some(Duration::ZERO),
            ready_pods: [pod]
                .into_iter()
                .filter(|pod| pod.ready)
                .map(|pod| Target::of(&pod.meta))
                .collect(),
            settings: Arc::default(),
            now: Timestamp::now(),
        }
    }

    async fn lease(&self) -> Option<Lease> {
        let key = Key::new("kube-node-lease", "a");
        self.gateway.get(&key).await.ok()
    }

    async fn act(&self, world: &World, action: &Action) -> Result<Receipt, ApiError> {
        let result = self.nodes.act(&self.gateway, world, action).await;
        self.nodes.record(world, action, &result);
        result
    }

    /// Executes the plan and returns its actions.
    async fn step(&self) -> Vec<Action> {
        let world = self.world().await;
        let steps = plan(&world).steps;
        for step in &steps {
            self.act(&world, &step.action).await.unwrap();
        }
        steps.into_iter().map(|step| step.action).collect()
    }

    async fn eviction(&self) -> EvictionWorld {
        let pod = PodView::of(self.pod().await.unwrap());
        EvictionWorld {
            pod: Arc::new(pod),
            taints: self.node().await.spec.taints,
            waited: Some(Duration::from_secs(300)),
        }
    }

    async fn evict(&self, world: &EvictionWorld) -> Result<EvictionAction, ApiError> {
        let [step] = plan_eviction(world).steps.try_into().unwrap();
        let result = self.evictions.act(&self.gateway, world, &step.action).await;
        self.evictions.record(world, &step.action, &result);
        result.map(|_| step.action)
    }

    async fn untaint(&self) {
        let patch = serde_json::json!({"spec": {"taints": []}});
        let key = Key::new("", "a");
        self.gateway.patch::<Node>(&key, "", patch).await.unwrap();
    }

    async fn taint(&self) {
        let mut node = self.node().await;
        node.spec.taints.push(Taint {
            key: UNREACHABLE.into(),
            effect: "NoExecute".into(),
            ..Default::default()
        });
        self.gateway.update(&node).await.unwrap();
    }
}

fn node() -> Node {
    let mut node = Node::default();
    node.metadata.name = "a".into();
    node.spec.taints.push(Taint {
        key: "example.com/gpu".into(),
        effect: "NoSchedule".into(),
        ..Default::default()
    });
    node.status
        .capacity
        .insert("cpu".into(), Quantity::new("2"));
    node.status.conditions.push(NodeCondition {
        r#type: "Ready".into(),
        status: "True".into(),
        last_heartbeat_time: Timestamp::now().into(),
        ..Default::default()
    });
    node
}

fn lease() -> Lease {
    let mut lease = Lease::default();
    (lease.metadata.namespace, lease.metadata.name) = ("kube-node-lease".into(), "a".into());
    lease.spec.holder_identity = Some("a".into());
    lease.spec.renew_time = Some(Timestamp::now().into());
    lease
}

/// Checks N6.
#[tokio::test]
async fn a_silent_node_is_unknown_then_tainted_and_its_pods_are_not_ready() {
    let fixture = Fixture::start().await;
    let capacity = fixture.node().await.status.capacity;
    let first = fixture.step().await;
    assert!(
        matches!(first[..], [Action::MarkUnknown(_), ..]),
        "{first:?}"
    );
    let node = fixture.node().await;
    let ready = condition::get(&node.status.conditions, "Ready").unwrap();
    assert_eq!(
        (&*ready.status, &*ready.reason),
        ("Unknown", "NodeStatusUnknown")
    );
    assert_eq!(
        node.status.capacity, capacity,
        "the rest of the status is kept"
    );

    let second = fixture.step().await;
    assert!(matches!(
        second[..],
        [Action::Taint(_), Action::MarkPodNotReady(_)]
    ));
    let taints = fixture.node().await.spec.taints;
    let keys: Vec<_> = taints.iter().map(|one| (&*one.key, &*one.effect)).collect();
    assert_eq!(
        keys,
        [
            ("example.com/gpu", "NoSchedule"),
            (UNREACHABLE, "NoSchedule"),
            (UNREACHABLE, "NoExecute")
        ]
    );
    assert!(taints[2].time_added.is_some());
    let pod = fixture.pod().await.unwrap();
    let ready = condition::get(&pod.status.conditions, "Ready").unwrap();
    assert_eq!((&*ready.status, &*pod.status.phase), ("False", "Running"));
    assert_eq!(fixture.step().await, []);
}

#[tokio::test]
async fn a_node_whose_lease_was_renewed_meanwhile_stays_ready() {
    let fixture = Fixture::start().await;
    let stale = fixture.world().await;
    let mut lease = fixture.lease().await.unwrap();
    let later = Timestamp::now() + SignedDuration::from_secs(1);
    lease.spec.renew_time = Some(later.into());
    fixture.gateway.update(&lease).await.unwrap();
    let action = &plan(&stale).steps[0].action;
    let refused = fixture.act(&stale, action).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(refused.message, "the Lease of node a was renewed meanwhile");

    let key = Key::new("kube-node-lease", "a");
    let deleted = fixture
        .gateway
        .delete::<Lease>(&key, Default::default(), None);
    deleted.await.unwrap();
    fixture.act(&stale, action).await.unwrap();
}

#[tokio::test]
async fn writes_of_a_node_require_the_version_that_was_observed() {
    let fixture = Fixture::start().await;
    let seen = fixture.world().await;
    let unknown = plan(&seen).steps[0].action.clone();
    fixture.act(&seen, &unknown).await.unwrap();
    let refused = fixture.act(&seen, &unknown).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    let seen = fixture.world().await;
    let taint = plan(&seen).steps[0].action.clone();
    fixture.untaint().await;
    let refused = fixture.act(&seen, &taint).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
}

#[tokio::test]
async fn a_pod_that_is_gone_or_no_longer_ready_is_not_marked() {
    let fixture = Fixture::start().await;
    let world = fixture.world().await;
    let mark = Action::MarkPodNotReady(world.ready_pods[0].clone());
    fixture.act(&world, &mark).await.unwrap();
    assert_eq!(fixture.act(&world, &mark).await, Ok(Receipt::none()));
    let key = Key::new("default", "web");
    let delete = || {
        fixture
            .gateway
            .delete::<Pod>(&key, Default::default(), Some(0))
    };
    delete().await.unwrap();
    assert_eq!(fixture.act(&world, &mark).await, Ok(Receipt::none()));
    fixture.create_pod().await;
    let other = fixture.act(&world, &mark).await;
    assert_eq!(other, Ok(Receipt::none()), "another Pod of the name");
}

/// A crash after any write leaves a state from which the next plan continues.
#[tokio::test]
async fn an_evicted_pod_is_a_disruption_target_and_then_deleted() {
    let fixture = Fixture::start().await;
    fixture.taint().await;
    let seen = fixture.eviction().await;
    for _ in 0..2 {
        let marked = fixture.evict(&seen).await;
        assert_eq!(
            marked,
            Ok(EvictionAction::MarkDisrupted),
            "repeated after a crash"
        );
    }
    let pod = fixture.pod().await.unwrap();
    let target = condition::get(&pod.status.conditions, "DisruptionTarget").unwrap();
    let found = [&*target.status, &target.reason, &target.message];
    let expected = [
        "True",
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    ];
    assert_eq!(found, expected);

    let seen = fixture.eviction().await;
    assert_eq!(fixture.evict(&seen).await, Ok(EvictionAction::Delete));
    let pod = fixture.pod().await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_some());
    assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));

    fixture.events.finish().await;
    let events = fixture.gateway.list::<Event>(&Default::default()).await;
    let events = events.unwrap().items;
    let messages: Vec<_> = events
        .iter()
        .filter(|event| event.reason == "TaintManagerEviction")
        .map(|event| &*event.message)
        .collect();
    assert_eq!(messages, ["Marking for deletion Pod default/web"]);
}

#[tokio::test]
async fn a_pod_stays_if_its_node_has_lost_the_taint_meanwhile() {
    let fixture = Fixture::start().await;
    fixture.taint().await;
    let stale = fixture.eviction().await;
    fixture.untaint().await;
    let refused = fixture.evict(&stale).await.unwrap_err();
    assert_eq!(
        (refused.reason, &*refused.message),
        (Reason::Conflict, "node a has lost the taint meanwhile")
    );
    let pod = fixture.pod().await.unwrap();
    assert!(condition::get(&pod.status.conditions, "DisruptionTarget").is_none());
}
