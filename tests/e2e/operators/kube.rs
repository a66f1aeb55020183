//! An operator of kube: `website.rs`.

use std::sync::Arc;

use axum::http::HeaderValue;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use setpoint_tests::jaeger::Jaeger;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::website::{Operator, REMOVED, TRACEPARENT, Website, traced};
use super::{apply, field, until, until_gone};
use crate::kube_client::kube_client;

const SITE: &str = "website/shop";
const SERVER: &str = "deployment/shop";

fn website(html: &str) -> String {
    format!(
        "apiVersion: websites.example.com/v1
kind: Website
metadata: {{name: shop}}
spec: {{html: {html}}}
"
    )
}

const SIZE: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 0,
    simulated_nodes: 1,
};

/// The operator, as a task.
struct Running {
    runtime: Runtime,
    operator: Arc<Operator>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(cluster: &Cluster) -> Self {
        let runtime = Runtime::new().expect("threads can be started");
        let operator = runtime.block_on(async { Operator::install(kube_client(cluster)).await });
        let task = runtime.spawn(operator.clone().run());
        Self {
            runtime,
            operator,
            task,
        }
    }

    fn stop(&mut self) {
        self.task.abort();
        let ended = self.runtime.block_on(&mut self.task);
        assert!(ended.is_err_and(|error| error.is_cancelled()));
    }

    fn restart(&mut self) {
        self.task = self.runtime.spawn(self.operator.clone().run());
    }

    /// Waits until a reconcile ends.
    fn reconciled(&self) {
        let before = self.operator.reconciles();
        eventually("a reconcile ends", || {
            let reconciles = self.operator.reconciles();
            (reconciles > before)
                .then_some(())
                .ok_or(reconciles.to_string())
        });
    }
}

#[test]
fn an_operator_of_kube_applies_the_children_of_each_website() {
    let mut cluster = Cluster::start(SIZE);
    let kubectl = cluster.kubectl();
    let mut running = Running::start(&cluster);
    it_applies_children_and_a_status(&kubectl);
    it_follows_its_scale(&kubectl);
    it_mends_its_own_fields_only(&kubectl, &running);
    it_survives_a_restart_of_the_gateway(&kubectl, &mut cluster);
    it_cleans_up_before_the_object_goes(&kubectl, &mut running);
}

fn it_applies_children_and_a_status(kubectl: &Kubectl) {
    apply(kubectl, &website("hello"));
    kubectl.ok("wait website/shop --for=condition=Ready --timeout=60s");
    assert_eq!(
        field(kubectl, "configmap/shop", r".data.index\.html"),
        "hello"
    );
    let uid = field(kubectl, SITE, ".metadata.uid");
    for child in ["configmap/shop", SERVER] {
        let owner = ".metadata.ownerReferences[?(@.controller==true)].uid";
        assert_eq!(field(kubectl, child, owner), uid);
    }
    let table = kubectl.ok("get site");
    assert!(table.contains("READY") && table.contains("True"), "{table}");
}

fn it_follows_its_scale(kubectl: &Kubectl) {
    kubectl.ok("scale website/shop --replicas=2");
    until(kubectl, SITE, ".status.replicas", "2");
    let generation = field(kubectl, SITE, ".metadata.generation");
    until(kubectl, SITE, ".status.observedGeneration", &generation);
    let refused = kubectl.fails("scale website/shop --replicas=10");
    assert!(
        refused.contains("should be less than or equal to 9"),
        "{refused}"
    );
}

fn it_mends_its_own_fields_only(kubectl: &Kubectl, running: &Running) {
    kubectl.ok("annotate deployment/shop note=hello");
    kubectl.ok("set image deployment/shop nginx=nginx:1.26");
    let image = ".spec.template.spec.containers[0].image";
    until(kubectl, SERVER, image, "nginx:1.25");
    kubectl.ok("delete configmap shop");
    until(kubectl, "configmap/shop", r".data.index\.html", "hello");
    assert_eq!(
        field(kubectl, SERVER, ".metadata.annotations.note"),
        "hello"
    );
    kubectl.ok("rollout status deployment/shop --timeout=60s");
    until(kubectl, SITE, ".status.replicas", "2");
    let before = field(kubectl, "configmap/shop", ".metadata.resourceVersion");
    kubectl.ok("annotate website/shop note=hello");
    running.reconciled();
    let after = field(kubectl, "configmap/shop", ".metadata.resourceVersion");
    assert_eq!(after, before, "a reconcile without changes writes nothing");
}

fn it_survives_a_restart_of_the_gateway(kubectl: &Kubectl, cluster: &mut Cluster) {
    cluster.process("gateway-0").restart();
    cluster.wait_until_ready();
    apply(kubectl, &website("bye"));
    until(kubectl, "configmap/shop", r".data.index\.html", "bye");
}

fn it_cleans_up_before_the_object_goes(kubectl: &Kubectl, running: &mut Running) {
    running.stop();
    kubectl.ok("delete website shop --wait=false");
    let finalizers = field(kubectl, SITE, ".metadata.finalizers");
    assert_eq!(finalizers, r#"["websites.example.com/cleanup"]"#);
    running.restart();
    until_gone(kubectl, SITE);
    let removed = field(kubectl, &format!("configmap/{REMOVED}"), ".data.shop");
    assert_eq!(removed, "removed");
    until_gone(kubectl, SERVER);
    until_gone(kubectl, "configmap/shop");
}

/// The user sends the header, and names the trace in the annotation that this operator continues.
#[test]
fn a_cascade_through_an_operator_that_hands_the_trace_on_is_one_trace() {
    let jaeger = Jaeger::start();
    let cluster = Cluster::traced(SIZE, &jaeger.collector());
    let running = Running::start(&cluster);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let website = json!({
        "apiVersion": "websites.example.com/v1",
        "kind": "Website",
        "metadata": { "name": "shop", "annotations": { TRACEPARENT: parent } },
        "spec": { "html": "hello" },
    });
    running.runtime.block_on(async {
        let parent = HeaderValue::from_str(&parent).expect("it is ASCII");
        let websites: Api<Website> = Api::default_namespaced(traced(kube_client(&cluster), parent));
        let (params, website) = (PatchParams::apply("user"), Patch::Apply(website));
        let applied = websites.patch("shop", &params, &website).await;
        applied.expect("the object is valid");
    });
    let spans = [
        ("gateway", "PATCH /apis/websites.example.com/…"),
        ("gateway", "PATCH /apis/apps/…"),
        ("deployment-controller", "reconcile"),
        ("replicaset-controller", "reconcile"),
        ("scheduler", "schedule"),
        ("node-agent", "report"),
    ];
    eventually("the trace has the whole cascade", || {
        let trace = jaeger.trace(trace);
        let missing = spans
            .iter()
            .find(|expected| !trace.spans.iter().any(|span| span.is(expected)));
        missing.map_or(Ok(()), |missing| {
            Err(format!("no {missing:?} in\n{}", trace.tree()))
        })
    });
}

#[test]
fn a_write_of_an_operator_that_hands_no_trace_on_is_a_trace_that_is_linked_to_its_reason() {
    let jaeger = Jaeger::start();
    let cluster = Cluster::traced(SIZE, &jaeger.collector());
    let kubectl = cluster.kubectl();
    let _running = Running::start(&cluster);
    apply(&kubectl, &website("hello"));
    kubectl.ok("wait website/shop --for=condition=Ready --timeout=60s");
    let first_trace = |object: &str| {
        let history = cluster.setpoint_json(0, &format!("history {object}"))?;
        let versions = history["versions"].as_array().cloned().unwrap_or_default();
        let first = versions.last().map(|version| version["traceId"].clone());
        let first = first.and_then(|id| Some(id.as_str()?.to_owned()));
        first.ok_or_else(|| format!("{history:#}"))
    };
    let asked = first_trace(SITE).expect("the user's write is traced");
    let mut trace = first_trace("configmap/shop").expect("the operator's write is traced");
    assert_ne!(trace, asked);
    // The operator adds its finalizer, and then the child: a trace each.
    while trace != asked {
        trace = eventually("the trace of the operator's write is linked", || {
            let found = jaeger.trace(&trace);
            let mut links = found.spans.iter().flat_map(|span| &span.links);
            links.next().cloned().ok_or(found.tree())
        });
    }
    let why = cluster.setpoint_json(0, "why website/shop");
    let why = why.expect("the object exists");
    assert_eq!(why["cause"]["writer"], "website-operator");
    let managers = why["managers"].as_array().cloned().unwrap_or_default();
    let operator = managers
        .iter()
        .find(|manager| manager["name"] == "website-operator");
    let fields = operator.expect("it has written the status")["fields"].to_string();
    assert!(fields.contains("status.conditions"), "{fields}");
    let page = cluster.setpoint_at(0, "why website/shop").stdout;
    assert!(page.contains("Written by:"), "{page}");
}
