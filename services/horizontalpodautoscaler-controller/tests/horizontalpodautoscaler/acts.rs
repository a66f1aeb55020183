//! Tests of reads and writes of the horizontalpodautoscaler-controller, against a gateway in this process and a table
//! of metrics.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_controller::{
    Client, Inputs, ObjectRef, Outcome, Reader, Reconciler, Recorder, client,
};
use setpoint_gateway::in_process::{self, InProcess, custom_kind};
use setpoint_horizontalpodautoscaler_controller::{
    Action, AutoscalerView, Autoscalers, Autoscaling, Reading, ResourceMetrics, World,
};
use setpoint_model::{Key, Revision, Selector};
use setpoint_proto::apps::{Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::autoscaling_v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use setpoint_proto::core::{Namespace, Pod, ReplicationController, ServiceAccount};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::metrics::PodMetrics;
use setpoint_proto::{ApiError, Reason, Resource};
use tokio_util::sync::{CancellationToken, DropGuard};

const NAMESPACE: &str = "production";

/// Metrics of Pods, in a table.
struct Table(Vec<PodMetrics>);

impl ResourceMetrics for Table {
    fn of_pods<'a>(
        &'a self,
        _: &'a Client,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodMetrics>, ApiError>> {
        assert_eq!(
            (namespace, selector.to_string().as_str()),
            (NAMESPACE, "app=web")
        );
        ready(Ok(self.0.clone())).boxed()
    }
}

/// A gateway and a reconciler that reads informers of it.
struct Fixture {
    client: Client,
    autoscalers: Reader<AutoscalerView>,
    reconciler: Autoscalers,
    gateway: InProcess,
    _informers: DropGuard,
}

impl Fixture {
    async fn start() -> Self {
        let gateway = in_process::start().await;
        let settings = client::Settings {
            address: gateway.url.clone(),
            ..Default::default()
        };
        let client = Client::connect(&settings, "horizontalpodautoscaler-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        client.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        (account.metadata.namespace, account.metadata.name) = (NAMESPACE.into(), "default".into());
        client.create(&account).await.unwrap();

        let stop = CancellationToken::new();
        let (all, pods, definitions) = (client.informer(), client.informer(), client.informer());
        let autoscalers = all.reader();
        let reconciler = Autoscalers::new(
            all.reader(),
            pods.reader(),
            definitions.reader(),
            Autoscaling::default(),
            Recorder::silent(),
        );
        let usage = |name: &str| {
            let json = json!({
                "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": name},
                "timestamp": "2026-01-01T00:00:00Z", "window": "30s",
                "containers": [{"name": "main", "usage": {"cpu": "1400m"}}]});
            serde_json::from_value(json).unwrap()
        };
        let table = Table(["web-a", "web-b", "web-c"].map(usage).into());
        let reconciler = reconciler.metrics(table);
        tokio::spawn(all.run(stop.clone()));
        tokio::spawn(pods.run(stop.clone()));
        tokio::spawn(definitions.run(stop.clone()));
        let fixture = Self {
            client,
            autoscalers,
            reconciler,
            gateway,
            _informers: stop.drop_guard(),
        };
        for name in ["web-a", "web-b", "web-c"] {
            fixture.run_pod(name).await;
        }
        fixture
    }

    async fn create<T: Resource + serde::de::DeserializeOwned>(&self, mut json: Value) -> T {
        json["metadata"]["namespace"] = NAMESPACE.into();
        json["apiVersion"] = T::API_VERSION.into();
        json["kind"] = T::KIND.into();
        let object: T = serde_json::from_value(json).unwrap();
        self.client.create(&object).await.unwrap().object().unwrap()
    }

    /// Creates a Pod that has been ready for long, and waits until the informer has it.
    async fn run_pod(&self, name: &str) {
        let container =
            json!({"name": "main", "image": "web", "resources": {"requests": {"cpu": "1"}}});
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [container]}});
        let mut pod: Pod = self.create(pod).await;
        let status = json!({"phase": "Running", "startTime": "2025-01-01T00:00:00Z", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2025-01-01T00:00:10Z"}]});
        pod.status = serde_json::from_value(status).unwrap();
        self.client.update_status(&pod).await.unwrap();
    }

    async fn create_target<T: Resource + serde::de::DeserializeOwned>(&self, name: &str) -> T {
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}});
        let selector = match T::KIND {
            "ReplicationController" => json!({"app": "web"}),
            _ => json!({"matchLabels": {"app": "web"}}),
        };
        let spec = json!({"replicas": 3, "serviceName": "web", "selector": selector, "template": template});
        self.create(json!({"metadata": {"name": name}, "spec": spec}))
            .await
    }

    async fn create_autoscaler(&self, api_version: &str, kind: &str, name: &str) -> Key {
        let target = json!({"apiVersion": api_version, "kind": kind, "name": name});
        let utilization = json!({"type": "Utilization", "averageUtilization": 70});
        let resource = json!({"name": "cpu", "target": utilization});
        let metrics = json!([{"type": "Resource", "resource": resource}]);
        self.create_autoscaler_by(target, metrics).await
    }

    async fn create_autoscaler_by(&self, target: Value, metrics: Value) -> Key {
        let name = target["name"].clone();
        let spec = json!({"scaleTargetRef": target, "maxReplicas": 10, "metrics": metrics});
        let created: HorizontalPodAutoscaler = self
            .create(json!({"metadata": {"name": name}, "spec": spec}))
            .await;
        self.autoscalers
            .reach(Revision::of(&created.metadata))
            .await;
        Key::of(&created.metadata)
    }

    /// Returns the world of an autoscaler once all Pods are in it.
    async fn look(&self, key: &Key) -> Arc<World> {
        loop {
            let now = Timestamp::now();
            self.reconciler.fetch(&self.client, key, now).await;
            let inputs = Inputs {
                now,
                instant: std::time::Instant::now(),
                seed: 7,
            };
            let world = self.reconciler.observe(key, inputs).unwrap();
            let ready = world.pods.iter().filter(|pod| pod.is_ready()).count();
            if world.scale.is_err() || ready == 3 {
                return world;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn act(&self, world: &Arc<World>) -> Result<Outcome<Action>, ApiError> {
        let plan = Autoscalers::plan(world);
        for step in &plan.steps {
            let acted = self.reconciler.act(&self.client, world, &step.action).await;
            self.reconciler.record(world, &step.action, &acted);
            acted?;
        }
        let done = plan.steps.len();
        Ok(Outcome {
            plan,
            failed: None,
            done,
        })
    }

    async fn report(
        &self,
        world: &Arc<World>,
        outcome: &Outcome<Action>,
    ) -> HorizontalPodAutoscalerStatus {
        let status = Autoscalers::status(world, outcome).unwrap();
        let updated = self
            .reconciler
            .update_status(&self.client, world, status)
            .await;
        self.autoscalers.reach(updated.unwrap().revision).await;
        let key = &world.autoscaler.meta.key;
        let autoscaler: HorizontalPodAutoscaler = self.client.get(key).await.unwrap();
        autoscaler.status
    }

    async fn deployment(&self) -> Deployment {
        self.client.get(&Key::new(NAMESPACE, "web")).await.unwrap()
    }
}

/// Checks H1, H2.
#[tokio::test]
async fn three_replicas_at_twice_their_target_become_six_and_nothing_else_changes() {
    let fixture = Fixture::start().await;
    let before: Deployment = fixture.create_target("web").await;
    let key = fixture
        .create_autoscaler("apps/v1", "Deployment", "web")
        .await;
    let world = fixture.look(&key).await;
    let outcome = fixture.act(&world).await.unwrap();
    let scale = Action::Scale {
        replicas: 6,
        reason: "cpu resource utilization (percentage of request) above target".to_owned(),
    };
    assert_eq!(outcome.plan.steps[0].action, scale);
    let after = fixture.deployment().await;
    assert_eq!(after.spec.replicas, Some(6));
    let mut spec = after.spec.clone();
    spec.replicas = before.spec.replicas;
    assert_eq!(spec, before.spec);
    assert_eq!(
        (after.metadata.labels, after.metadata.annotations),
        (before.metadata.labels, before.metadata.annotations)
    );
    let scales =
        |manager: &setpoint_proto::meta::ManagedFieldsEntry| manager.subresource == "scale";
    assert!(
        after.metadata.managed_fields.iter().any(scales),
        "it owns replicas by scale"
    );

    let status = fixture.report(&world, &outcome).await;
    assert_eq!((status.current_replicas, status.desired_replicas), (3, 6));
    let able = status
        .conditions
        .iter()
        .find(|one| one.r#type == "AbleToScale")
        .unwrap();
    assert_eq!(able.reason, "SucceededRescale");

    // The next look finds 6 replicas, and the recommendation of 6 in the history.
    let world = fixture.look(&key).await;
    let outcome = fixture.act(&world).await.unwrap();
    assert_eq!(outcome.plan.steps, []);
    let status = fixture.report(&world, &outcome).await;
    assert_eq!((status.current_replicas, status.desired_replicas), (6, 6));
    assert!(status.last_scale_time.is_some());
}

/// Checks H2.
#[tokio::test]
async fn a_target_that_has_changed_since_it_was_read_is_not_scaled() {
    let fixture = Fixture::start().await;
    let _: Deployment = fixture.create_target("web").await;
    let key = fixture
        .create_autoscaler("apps/v1", "Deployment", "web")
        .await;
    let world = fixture.look(&key).await;
    let patch = json!({"spec": {"replicas": 2}});
    let web = Key::new(NAMESPACE, "web");
    fixture
        .client
        .patch::<Deployment>(&web, "", patch)
        .await
        .unwrap();
    let refused = fixture.act(&world).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    assert_eq!(fixture.deployment().await.spec.replicas, Some(2));
    let fresh = fixture.look(&key).await;
    fixture.act(&fresh).await.unwrap();
    // At most twice as many, and at least 4, at a time.
    assert_eq!(fixture.deployment().await.spec.replicas, Some(4));
}

#[tokio::test]
async fn every_kind_with_a_scale_is_scaled() {
    let fixture = Fixture::start().await;
    let _: ReplicaSet = fixture.create_target("set").await;
    let _: StatefulSet = fixture.create_target("stateful").await;
    let _: ReplicationController = fixture.create_target("controller").await;
    for (api_version, kind, name, resource) in [
        ("apps/v1", "ReplicaSet", "set", "replicasets.apps"),
        ("apps/v1", "StatefulSet", "stateful", "statefulsets.apps"),
        (
            "v1",
            "ReplicationController",
            "controller",
            "replicationcontrollers",
        ),
    ] {
        let key = fixture.create_autoscaler(api_version, kind, name).await;
        let world = fixture.look(&key).await;
        fixture.act(&world).await.unwrap();
        let target: ObjectRef = key.clone().in_resource(resource);
        let scale = fixture.client.scale(&target).await.unwrap();
        assert_eq!(scale.spec.replicas, 6, "{kind}");
        // The Pods may belong to one autoscaler only.
        let gone = fixture
            .client
            .delete::<HorizontalPodAutoscaler>(&key, Default::default(), None);
        let gone = gone.await.unwrap();
        fixture.autoscalers.reach(gone.revision).await;
        fixture
            .reconciler
            .fetch(&fixture.client, &key, Timestamp::now())
            .await;
    }
}

/// The words are those of upstream's clients of the two groups, which this gateway does not have.
#[tokio::test]
async fn metrics_without_a_prometheus_cannot_be_read_and_change_nothing() {
    let fixture = Fixture::start().await;
    let _: Deployment = fixture.create_target("web").await;
    let average = json!({"type": "AverageValue", "averageValue": "1"});
    let (load, service) = (
        json!({"name": "load"}),
        json!({"apiVersion": "v1", "kind": "Service", "name": "web"}),
    );
    let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "name": "web"});
    let metrics = json!([
        {"type": "Pods", "pods": {"metric": load, "target": average}},
        {"type": "Object", "object": {"metric": load, "describedObject": service, "target": average}},
        {"type": "Object", "object": {"metric": load, "describedObject": gadget, "target": average}},
        {"type": "External", "external": {"metric": load, "target": average}},
    ]);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let key = fixture.create_autoscaler_by(target, metrics).await;
    let world = fixture.look(&key).await;
    let custom = "unable to fetch metrics from custom metrics API: ";
    let none = format!("{custom}no custom metrics API (custom.metrics.k8s.io) registered");
    let unknown = format!(
        "{custom}unable to map kind Gadget to resource: no matches for kind \"Gadget\" in group \"example.com\""
    );
    let external = "unable to fetch metrics from external metrics API: the server could not find the requested resource (get load.external.metrics.k8s.io)";
    let expected = [
        Reading::Pods(Err(none.clone())),
        Reading::Values(Err(none.clone())),
        Reading::Values(Err(unknown)),
        Reading::Values(Err(external.to_owned())),
    ];
    assert_eq!(world.readings, expected);
    let outcome = fixture.act(&world).await.unwrap();
    assert_eq!(outcome.plan.steps, []);
    let status = fixture.report(&world, &outcome).await;
    let active = status
        .conditions
        .iter()
        .find(|one| one.r#type == "ScalingActive");
    let active = active.unwrap();
    assert_eq!(
        (&*active.status, &*active.reason),
        ("False", "FailedGetPodsMetric")
    );
    let expected = format!(
        "the HPA was unable to compute the replica count: unable to get metric load: {none}"
    );
    assert_eq!(active.message, expected);
}

/// Checks RF4: a custom target that does not say how many replicas it wants is not one that wants none.
#[tokio::test]
async fn a_target_that_does_not_say_its_replicas_is_a_condition() {
    let fixture = Fixture::start().await;
    let mut definition = custom_kind::define(&fixture.gateway).await;
    let scale = json!({
        "scale": { "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" },
    });
    definition.spec.versions[0].subresources = serde_json::from_value(scale).unwrap();
    fixture.client.update(&definition).await.unwrap();
    let metadata = ObjectMeta {
        name: "web".into(),
        namespace: NAMESPACE.into(),
        ..ObjectMeta::default()
    };
    let created = custom_kind::create(&fixture.gateway, metadata).await;
    created.unwrap();
    let key = fixture
        .create_autoscaler(custom_kind::VERSION, "Tab", "web")
        .await;
    let mut world = fixture.look(&key).await;
    while world
        .scale
        .as_ref()
        .is_err_and(|error| error.starts_with("no matches"))
    {
        // The informer does not have the definition yet.
        tokio::task::yield_now().await;
        world = fixture.look(&key).await;
    }
    let outcome = fixture.act(&world).await.unwrap();
    let status = fixture.report(&world, &outcome).await;
    let condition = &status.conditions[0];
    assert_eq!(
        (&*condition.r#type, &*condition.status, &*condition.reason),
        ("AbleToScale", "False", "FailedGetScale")
    );
    let expected = "the HPA controller was unable to get the target's current scale: \
        Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    assert_eq!(condition.message, expected);
}

#[tokio::test]
async fn a_target_that_does_not_exist_is_a_condition() {
    let fixture = Fixture::start().await;
    let key = fixture
        .create_autoscaler("apps/v1", "Deployment", "web")
        .await;
    let world = fixture.look(&key).await;
    let outcome = fixture.act(&world).await.unwrap();
    let status = fixture.report(&world, &outcome).await;
    let condition = &status.conditions[0];
    assert_eq!(
        (&*condition.r#type, &*condition.reason),
        ("AbleToScale", "FailedGetScale")
    );
    let expected = "the HPA controller was unable to get the target's current scale: deployments.apps \"web\" not found";
    assert_eq!(condition.message, expected);
    let key = fixture
        .create_autoscaler("example.com/v1", "Widget", "other")
        .await;
    let world = fixture.look(&key).await;
    let expected = "no matches for kind \"Widget\" in group \"example.com\"";
    assert_eq!(world.scale, Err(expected.to_owned()));
}
