//! Builders of worlds.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_controller::View as _;
use setpoint_horizontalpodautoscaler_controller::{
    AutoscalerView, Autoscaling, ContainerRequests, History, Phase, PodView, Readiness, Reading,
    ScaleView, World, resource_samples,
};
use setpoint_model::{Key, Labels};
use setpoint_proto::autoscaling::{Scale, ScaleSpec, ScaleStatus};
use setpoint_proto::autoscaling_v2::HorizontalPodAutoscaler;
use setpoint_proto::metrics::{ContainerMetrics, PodMetrics};

pub const NAMESPACE: &str = "shop";

/// Returns a fixed time.
pub fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// Returns the time so many seconds ago.
pub fn ago(seconds: u64) -> Timestamp {
    now() - Duration::from_secs(seconds)
}

/// The settings of upstream's own tests.
pub fn settings() -> Autoscaling {
    Autoscaling {
        cpu_initialization_period: Duration::from_secs(120),
        initial_readiness_delay: Duration::from_secs(10),
        ..Autoscaling::default()
    }
}

/// Returns a Pod that runs and is ready, without requests.
pub fn pod(name: &str) -> PodView {
    let mut pod = PodView {
        phase: Phase::Running,
        readiness: Some(Readiness {
            ready: Some(true),
            since: Timestamp::MIN,
        }),
        started: Some(Timestamp::MIN),
        ..PodView::default()
    };
    pod.meta.key = Key::new(NAMESPACE, name);
    pod.labels = labels("web");
    pod
}

pub fn labels(app: &str) -> Labels {
    std::collections::BTreeMap::from([("app".to_owned(), app.to_owned())]).into()
}

/// Returns requests of a container of the thousandths of a resource.
pub fn requests(container: &str, resource: &str, millis: i64) -> ContainerRequests {
    ContainerRequests {
        name: container.into(),
        requests: [(resource.into(), millis)].into(),
    }
}

/// Returns a Pod of one container that requests a CPU.
pub fn pod_of_one_cpu(name: &str) -> PodView {
    PodView {
        containers: [requests("main", "cpu", 1_000)].into(),
        ..pod(name)
    }
}

/// Returns the usage of a Pod by its containers, `container1` and so on.
pub fn pod_metrics(name: &str, resource: &str, millis: &[i64]) -> PodMetrics {
    let mut metrics = PodMetrics::default();
    metrics.metadata.name = name.to_owned();
    metrics.window = Duration::from_secs(60).into();
    let containers = (1..).zip(millis).map(|(n, millis)| {
        let mut container = ContainerMetrics {
            name: format!("container{n}"),
            ..ContainerMetrics::default()
        };
        let quantity = setpoint_proto::meta::Quantity {
            string: format!("{millis}m"),
        };
        container.usage.insert(resource.to_owned(), quantity);
        container
    });
    metrics.containers = containers.collect();
    metrics
}

/// Returns an autoscaler of a spec in JSON.
pub fn autoscaler(spec: Value) -> AutoscalerView {
    let json = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": NAMESPACE, "uid": "u"},
        "spec": spec,
    });
    AutoscalerView::of(serde_json::from_value::<HorizontalPodAutoscaler>(json).unwrap())
}

pub fn scale(replicas: i32) -> ScaleView {
    ScaleView {
        resource: "deployments.apps".to_owned(),
        scale: Scale {
            spec: ScaleSpec { replicas },
            status: ScaleStatus {
                replicas,
                selector: "app=web".to_owned(),
            },
            ..Scale::default()
        },
    }
}

/// Returns a spec with bounds, and the CPU as the only metric.
pub fn cpu_spec(min: i32, max: i32, target: i32) -> Value {
    json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": min, "maxReplicas": max,
        "metrics": [{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}}}],
    })
}

/// Returns a world of Pods of one CPU each, with these usages in thousandths.
pub fn cpu_world(spec: Value, usages: &[i64]) -> World {
    let name = |index: usize| format!("web-{index}");
    let metrics: Vec<_> = (0..usages.len())
        .map(|index| pod_metrics(&name(index), "cpu", &usages[index..=index]))
        .collect();
    let current = i32::try_from(usages.len()).unwrap();
    World {
        autoscaler: Arc::new(autoscaler(spec)),
        scale: Ok(scale(current)),
        pods: (0..usages.len())
            .map(|index| Arc::new(pod_of_one_cpu(&name(index))))
            .collect(),
        rivals: Vec::new(),
        readings: vec![Reading::Pods(Ok(resource_samples(&metrics, "cpu", None)))],
        history: History::default(),
        settings: Arc::new(settings()),
        now: now(),
    }
}

/// Changes the autoscaler of a world.
pub fn change(world: &mut World, change: impl FnOnce(&mut AutoscalerView)) {
    change(Arc::make_mut(&mut world.autoscaler));
}
