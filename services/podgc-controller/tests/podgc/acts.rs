//! Tests of the writes of the podgc-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::{Client, Receipt, Reconciler, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, condition};
use setpoint_podgc_controller::{Collection, Garbage, NodeState, World, plan};
use setpoint_proto::core::{Container, Namespace, Node, Pod, ServiceAccount};
use setpoint_proto::{ApiError, Reason};
use setpoint_workload::PodView;

/// A Pod on a node that does not exist, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    garbage: Garbage,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "podgc-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = "shop".into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        (account.metadata.namespace, account.metadata.name) = ("shop".into(), "default".into());
        gateway.create(&account).await.unwrap();
        let (pods, nodes) = (gateway.informer(), gateway.informer());
        let garbage = Garbage::new(pods.reader(), nodes.reader(), Collection::default());
        let fixture = Self {
            gateway,
            garbage,
            _gateway: server,
        };
        fixture.create_pod().await;
        fixture
    }

    async fn create_pod(&self) {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("shop".into(), "web".into());
        pod.spec.node_name = "gone".into();
        pod.spec.containers.push(Container {
            name: "main".into(),
            image: "web".into(),
            ..Default::default()
        });
        self.gateway.create(&pod).await.unwrap();
    }

    async fn pod(&self) -> Result<Pod, ApiError> {
        self.gateway.get(&Key::new("shop", "web")).await
    }

    async fn world(&self) -> World {
        World {
            pod: Arc::new(PodView::of(self.pod().await.unwrap())),
            node: NodeState::Missing(Duration::from_secs(60)),
            surplus: false,
            quarantine: Duration::from_secs(40),
        }
    }

    /// Executes the plan for a world.
    async fn act(&self, world: &World) -> Result<Receipt, ApiError> {
        let [step] = plan(world).steps.try_into().unwrap();
        self.garbage.act(&self.gateway, world, &step.action).await
    }
}

/// A crash after any write leaves a state from which the next plan continues.
#[tokio::test]
async fn a_pod_of_a_node_that_is_gone_has_failed_when_it_is_deleted() {
    let fixture = Fixture::start().await;
    let seen = fixture.world().await;
    fixture.act(&seen).await.unwrap();
    assert_eq!(fixture.act(&seen).await, Ok(Receipt::none()), "repeated");
    let pod = fixture.pod().await.unwrap();
    assert_eq!(pod.status.phase, "Failed");
    let target = condition::get(&pod.status.conditions, "DisruptionTarget").unwrap();
    let found = [&*target.status, &target.reason, &target.message];
    let expected = ["True", "DeletionByPodGC", "PodGC: node no longer exists"];
    assert_eq!(found, expected);

    let failed = fixture.world().await;
    fixture.act(&failed).await.unwrap();
    assert_eq!(fixture.pod().await.unwrap_err().reason, Reason::NotFound);
    assert_eq!(fixture.act(&failed).await, Ok(Receipt::none()), "repeated");
}

#[tokio::test]
async fn a_pod_stays_if_its_node_exists_although_no_cache_has_it() {
    let fixture = Fixture::start().await;
    let seen = fixture.world().await;
    let mut node = Node::default();
    node.metadata.name = "gone".into();
    fixture.gateway.create(&node).await.unwrap();
    let refused = fixture.act(&seen).await.unwrap_err();
    assert_eq!(
        (refused.reason, &*refused.message),
        (Reason::Conflict, "node gone exists")
    );
    assert_eq!(fixture.pod().await.unwrap().status.phase, "Pending");
}

#[tokio::test]
async fn another_pod_of_the_name_is_left_alone() {
    let fixture = Fixture::start().await;
    let running = fixture.world().await;
    fixture.act(&running).await.unwrap();
    let failed = fixture.world().await;
    fixture.act(&failed).await.unwrap();
    fixture.create_pod().await;
    assert_eq!(fixture.act(&running).await, Ok(Receipt::none()));
    let refused = fixture.act(&failed).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(fixture.pod().await.unwrap().status.phase, "Pending");
}
