//! Tests of the scales that the disruption-controller reads, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use jiff::Timestamp;
use setpoint_controller::{Client, Inputs, Reader, Reconciler, Recorder, View, client};
use setpoint_disruption_controller::{BudgetView, Budgets, World};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, owner};
use setpoint_proto::Resource;
use setpoint_proto::apps::{Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::batch::Job;
use setpoint_proto::core::{Container, Namespace, Pod, PodTemplateSpec, ServiceAccount};
use setpoint_proto::meta::{IntOrString, LabelSelector};
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_workload::{DefinitionView, PodView};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "production";

/// A gateway with a budget over all Pods of the namespace.
struct Fixture {
    gateway: Client,
    stop: CancellationToken,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "disruption-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        named(&mut account, "default");
        gateway.create(&account).await.unwrap();
        let mut budget = PodDisruptionBudget::default();
        named(&mut budget, "all");
        budget.spec.selector = Some(LabelSelector::default());
        budget.spec.max_unavailable = Some(IntOrString::int(1));
        gateway.create(&budget).await.unwrap();
        Self {
            gateway,
            stop: CancellationToken::new(),
            _gateway: server,
        }
    }

    async fn create<T: Resource>(&self, object: &T) -> T {
        self.gateway.create(object).await.unwrap().object().unwrap()
    }

    async fn pod_of<O: Resource>(&self, name: &str, owner: &O) {
        let mut pod = pod();
        named(&mut pod, name);
        pod.metadata
            .owner_references
            .push(owner::reference_to(owner));
        self.create(&pod).await;
    }

    async fn reader<V: View>(&self) -> Reader<V> {
        let informer = self.gateway.informer::<V>();
        let reader = informer.reader();
        tokio::spawn(informer.run(self.stop.clone()));
        reader.synced().await;
        reader
    }

    /// Fetches and observes the budget.
    async fn world(&self) -> World {
        let events = Recorder::new(self.gateway.clone(), "disruption-controller", "0");
        let budgets = Budgets::new(
            self.reader::<BudgetView>().await,
            self.reader::<PodView>().await,
            self.reader::<DefinitionView>().await,
            events,
        );
        let (key, now) = (Key::new(NAMESPACE, "all"), Timestamp::now());
        budgets.fetch(&self.gateway, &key, now).await;
        let inputs = Inputs {
            now,
            instant: std::time::Instant::now(),
            seed: 0,
        };
        budgets.observe(&key, inputs).unwrap()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn named<T: Resource>(object: &mut T, name: &str) {
    let meta = object.meta_mut();
    (meta.name, meta.namespace) = (name.into(), NAMESPACE.into());
}

fn pod() -> Pod {
    let mut pod = Pod::default();
    pod.metadata.labels.insert("app".into(), "web".into());
    pod.spec.containers.push(Container {
        name: "main".into(),
        image: "web".into(),
        ..Default::default()
    });
    pod
}

fn template() -> PodTemplateSpec {
    let pod = pod();
    PodTemplateSpec {
        metadata: pod.metadata,
        spec: pod.spec,
    }
}

fn selector() -> Option<LabelSelector> {
    Some(LabelSelector {
        match_labels: [("app".to_owned(), "web".to_owned())].into(),
        ..Default::default()
    })
}

#[tokio::test]
async fn replica_sets_of_one_deployment_are_one_controller() {
    let fixture = Fixture::start().await;
    let mut deployment = Deployment::default();
    named(&mut deployment, "web");
    (deployment.spec.selector, deployment.spec.template) = (selector(), template());
    deployment.spec.replicas = Some(5);
    let deployment = fixture.create(&deployment).await;
    for name in ["web-old", "web-new"] {
        let mut set = ReplicaSet::default();
        named(&mut set, name);
        (set.spec.selector, set.spec.template) = (selector(), template());
        set.metadata
            .owner_references
            .push(owner::reference_to(&deployment));
        let set = fixture.create(&set).await;
        fixture.pod_of(&format!("{name}-1"), &set).await;
    }
    let mut alone = ReplicaSet::default();
    named(&mut alone, "alone");
    (alone.spec.selector, alone.spec.template) = (selector(), template());
    alone.spec.replicas = Some(3);
    let alone = fixture.create(&alone).await;
    fixture.pod_of("alone-1", &alone).await;
    let mut set = StatefulSet::default();
    named(&mut set, "db");
    (set.spec.selector, set.spec.template) = (selector(), template());
    set.spec.replicas = Some(2);
    let set = fixture.create(&set).await;
    fixture.pod_of("db-0", &set).await;
    fixture.pod_of("db-1", &set).await;

    let world = fixture.world().await;
    assert_eq!(world.pods.len(), 5);
    let scales = world.scales.unwrap();
    assert_eq!((scales.replicas, scales.unmanaged), (5 + 3 + 2, false));
}

#[tokio::test]
async fn a_controller_without_replicas_and_one_that_is_gone_are_errors() {
    let fixture = Fixture::start().await;
    let mut bare = pod();
    named(&mut bare, "bare");
    fixture.create(&bare).await;
    let world = fixture.world().await;
    assert!(world.scales.unwrap().unmanaged);

    let mut job = Job::default();
    named(&mut job, "job");
    (job.metadata.uid, job.spec.template) = ("1".into(), template());
    fixture.pod_of("job-1", &job).await;
    let error = fixture.world().await.scales.unwrap_err();
    assert_eq!(error, "found no controllers for pod \"job-1\"");
}
