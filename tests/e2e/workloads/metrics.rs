//! HorizontalPodAutoscalers on metrics of a real Prometheus, which scrapes an exporter of the test.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use setpoint_testkit::{Exporter, Prometheus};
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use super::{MANAGER, create, flags, names, until, value};

const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: web}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 8
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
  metrics: [METRIC]
"#;
const EXTERNAL: &str = "{type: External, external: {metric: {name: queue_length, selector: {matchLabels: {queue: mail}}}, target: {type: AverageValue, averageValue: 10}}}";
const OF_PODS: &str =
    "{type: Pods, pods: {metric: {name: load}, target: {type: AverageValue, averageValue: 500m}}}";

const HPA: &str = "horizontalpodautoscalers.v2.autoscaling/web";
const REPLICAS: &str = ".spec.replicas";
const ACTIVE: &str = ".status.conditions[?(@.type=='ScalingActive')]";

/// A cluster whose gateway reads Prometheus, and whose autoscalers read their metrics each second.
struct Scene {
    kubectl: Kubectl,
    exporter: Exporter,
    prometheus: Prometheus,
    _cluster: Cluster,
}

impl Scene {
    /// `None` if Prometheus is not installed.
    fn start(metric: &str) -> Option<Self> {
        if !Prometheus::is_installed() {
            eprintln!("SKIPPED: prometheus is not installed (Debian: apt-get install prometheus)");
            return None;
        }
        let exporter = Exporter::start();
        let jobs = BTreeMap::from([("test".to_owned(), vec![exporter.address()])]);
        let prometheus = Prometheus::start(&jobs);
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("gateway.toml");
        std::fs::write(&config, settings(&prometheus.url())).unwrap();
        let size = Size {
            process_nodes: 0,
            simulated_nodes: 2,
            ..Size::default()
        };
        let config = format!("--config={}", config.display());
        let mut cluster = Cluster::with_gateway_flags(size, &[&config]);
        cluster.service(MANAGER, 0, &flags());
        let kubectl = cluster.kubectl();
        create(&kubectl, &WEB.replace("METRIC", metric));
        kubectl.ok("rollout status deployment/web --timeout=60s");
        Some(Self {
            kubectl,
            exporter,
            prometheus,
            _cluster: cluster,
        })
    }

    fn until_replicas(&self, count: &str) {
        until(&self.kubectl, "deployment/web", REPLICAS, count);
        until(
            &self.kubectl,
            "deployment/web",
            ".status.readyReplicas",
            count,
        );
    }

    /// Waits until the autoscaler says why it cannot be active; `message` is how that ends.
    fn until_inactive(&self, reason: &str, message: &str) {
        eventually(
            &format!("ScalingActive is False because of {reason}: {message}"),
            || {
                let condition = |field| value(&self.kubectl, HPA, &format!("{ACTIVE}.{field}"));
                let found = (
                    condition("status"),
                    condition("reason"),
                    condition("message"),
                );
                let holds = found.0 == "False" && found.1 == reason && found.2.ends_with(message);
                holds.then_some(()).ok_or_else(|| format!("{found:?}"))
            },
        );
    }

    fn set_load_of_all_pods(&self, load: f64) {
        let mut text = String::new();
        for pod in names(&self.kubectl, "pods -l app=web") {
            writeln!(text, r#"load{{namespace="default",pod="{pod}"}} {load}"#).unwrap();
        }
        self.exporter.set(text);
    }
}

fn settings(prometheus: &str) -> String {
    format!(
        r#"
        [metrics]
        prometheus = "{prometheus}"
        timeout = "2s"
        [[metrics.custom]]
        name = "load"
        query = "sum by (<<by>>) (load{{<<matchers>>}})"
        resources = {{ pods = "pod", "deployments.apps" = "deployment" }}
        [[metrics.external]]
        name = "queue_length"
        query = "queue_length{{<<matchers>>}}"
        "#
    )
}

fn queue(length: u32) -> String {
    let other = r#"queue_length{namespace="default",queue="print"} 1000"#;
    format!("queue_length{{namespace=\"default\",queue=\"mail\"}} {length}\n{other}\n")
}

#[test]
fn a_deployment_follows_an_external_metric_up_and_down_and_stays_without_it() {
    let Some(mut scene) = Scene::start(EXTERNAL) else {
        return;
    };
    let fetch = "unable to fetch metrics from external metrics API: ";
    scene.until_inactive(
        "FailedGetExternalMetric",
        "no metrics returned from external metrics API",
    );
    scene.exporter.set(queue(60));
    scene.until_replicas("6");
    let message = ".items[?(@.reason=='SuccessfulRescale')].message";
    let selector = "&LabelSelector{MatchLabels:map[string]string{queue: mail,},MatchExpressions:[]LabelSelectorRequirement{},}";
    let rescaled =
        format!("New size: 6; reason: external metric queue_length({selector}) above target");
    until(&scene.kubectl, "events", message, &rescaled);
    scene.exporter.set(queue(30));
    scene.until_replicas("3");
    let raw = scene.kubectl.ok(
        "get --raw /apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue_length?labelSelector=queue%3Dmail",
    );
    assert!(raw.contains(r#""value":"30""#), "{raw}");
    // Neither a metric that has gone nor a Prometheus that has gone removes replicas.
    scene.exporter.set("");
    scene.until_inactive(
        "FailedGetExternalMetric",
        "no metrics returned from external metrics API",
    );
    scene.prometheus.kill();
    let refused =
        format!("{fetch}Internal error occurred: unable to fetch metrics: connection refused");
    scene.until_inactive("FailedGetExternalMetric", &refused);
    assert_eq!(value(&scene.kubectl, "deployment/web", REPLICAS), "3");
}

#[test]
fn a_deployment_follows_a_metric_of_its_pods_up_and_down() {
    let Some(scene) = Scene::start(OF_PODS) else {
        return;
    };
    scene.until_inactive(
        "FailedGetPodsMetric",
        "no metrics returned from custom metrics API",
    );
    scene.set_load_of_all_pods(1.5);
    scene.until_replicas("6");
    // A load that does not move to the other Pods asks for half of them again and again, until one is left.
    scene.set_load_of_all_pods(0.25);
    scene.until_replicas("1");
    until(
        &scene.kubectl,
        HPA,
        ".status.currentMetrics[0].pods.current.averageValue",
        "250m",
    );
}
