//! custom.metrics.k8s.io and external.metrics.k8s.io, from a real Prometheus.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::ACCEPT;
use prost::Message as _;
use serde_json::{Value, json};
use setpoint_codec::envelope;
use setpoint_gateway::{Adapter, AdapterSettings, in_process};
use setpoint_proto::custom_metrics::MetricValueList;
use setpoint_store::{Memory, cache};
use setpoint_testkit::{Exporter, Prometheus, free_port};

use crate::http::api::{Api, PROTOBUF};

const CUSTOM: &str = "/apis/custom.metrics.k8s.io/v1beta2";
const EXTERNAL: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const SERIES: &str = r#"
load{namespace="default",pod="web-1",path="/a"} 0.25
load{namespace="default",pod="web-1",path="/b"} 1
load{namespace="default",pod="web.2",path="/a"} 3
load{namespace="default",pod="webx2",path="/a"} 100
load{namespace="other",pod="web-1",path="/a"} 1000
load{namespace="default",deployment="web"} 7
load{node="n"} 9
queue{namespace="default",name="mail"} 12
queue{namespace="default",name="print"} 5
queue{namespace="other",name="mail"} 99
broken{namespace="default",pod="web-1"} NaN
"#;

fn settings(url: &str) -> AdapterSettings {
    let load = "sum by (<<by>>) (load{<<matchers>>})";
    let resources = json!({
        "pods": "pod", "deployments.apps": "deployment", "nodes": "node", "namespaces": "namespace",
    });
    let settings = json!({
        "prometheus": url,
        "timeout": "2s",
        "custom": [
            { "name": "load", "query": load, "resources": resources },
            { "name": "raw", "query": "load{<<matchers>>}" },
            { "name": "broken", "query": "broken{<<matchers>>}" },
            { "name": "invalid", "query": "load{<<matchers>>" },
        ],
        "external": [
            { "name": "queue", "query": "queue{<<matchers>>}" },
            { "name": "all", "query": "sum(queue{<<matchers>>})", "namespace": "" },
            { "name": "scalar", "query": "scalar(queue{<<matchers>>})" },
        ],
    });
    serde_json::from_value(settings).unwrap()
}

async fn gateway(settings: &AdapterSettings) -> Api {
    let adapter = Adapter::new(settings).unwrap();
    let store = Arc::new(Memory::default());
    let with = |registry: setpoint_gateway::registry::Registry| registry.with_adapter(adapter);
    let registry = in_process::registry_with(store, cache::Settings::default(), with).await;
    Api::over(registry).await
}

/// A gateway that reads a Prometheus that has scraped the series.
struct Scene {
    api: Api,
    prometheus: Prometheus,
    _exporter: Exporter,
}

impl Scene {
    /// `None` if Prometheus is not installed.
    async fn start() -> Option<Self> {
        if !Prometheus::is_installed() {
            eprintln!("SKIPPED: prometheus is not installed (Debian: apt-get install prometheus)");
            return None;
        }
        let exporter = Exporter::start();
        exporter.set(SERIES);
        let jobs = BTreeMap::from([("test".to_owned(), vec![exporter.address()])]);
        let prometheus = Prometheus::start(&jobs);
        let api = gateway(&settings(&prometheus.url())).await;
        let pods = "/api/v1/namespaces/default/pods";
        for (name, app) in [("web-1", "web"), ("web.2", "web"), ("webx2", "other")] {
            let containers = json!([{ "name": "main", "image": "web" }]);
            let metadata = json!({ "name": name, "labels": { "app": app } });
            let pod = json!({ "metadata": metadata, "spec": { "containers": containers } });
            api.post(pods, pod).await.ok();
        }
        let queue = format!("{EXTERNAL}/queue");
        let scraped = |reply: &crate::http::api::Reply| {
            let items = reply.code.is_success().then(|| reply.json());
            items.is_some_and(|list| list["items"].as_array().is_some_and(|all| !all.is_empty()))
        };
        api.eventually(&queue, scraped).await;
        Some(Self {
            api,
            prometheus,
            _exporter: exporter,
        })
    }

    async fn values(&self, path: &str) -> Vec<(String, String)> {
        let list = self.api.get(path).await.ok();
        let items = list["items"].as_array().unwrap().iter();
        let name = |item: &Value| match item["metricLabels"]["name"].as_str() {
            Some(label) => label.to_owned(),
            None => item["describedObject"]["name"]
                .as_str()
                .unwrap_or("")
                .to_owned(),
        };
        items
            .map(|item| (name(item), item["value"].as_str().unwrap().to_owned()))
            .collect()
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    expected.iter().map(owned).collect()
}

#[tokio::test]
async fn pods_and_other_objects_have_the_values_of_their_series() {
    let Some(scene) = Scene::start().await else {
        return;
    };
    let pods = format!("{CUSTOM}/namespaces/default/pods");
    let all = scene.values(&format!("{pods}/*/load")).await;
    assert_eq!(
        all,
        pairs(&[("web-1", "1250m"), ("web.2", "3"), ("webx2", "100")])
    );
    // A dot in a name is no wildcard.
    let web = format!("{pods}/*/load?labelSelector=app%3Dweb");
    assert_eq!(
        scene.values(&web).await,
        pairs(&[("web-1", "1250m"), ("web.2", "3")])
    );
    let path = format!("{pods}/web-1/load?metricLabelSelector=path%20in%20(/b)");
    assert!(
        scene
            .api
            .get(&path)
            .await
            .refused(400, "BadRequest")
            .contains("path")
    );
    let none = format!("{pods}/*/load?labelSelector=app%3Dnone");
    assert_eq!(scene.values(&none).await, []);
    for (path, name, value) in [
        ("namespaces/default/deployments.apps/web/load", "web", "7"),
        ("nodes/n/load", "n", "9"),
        ("namespaces/other/metrics/load", "other", "1k"),
    ] {
        let found = scene.values(&format!("{CUSTOM}/{path}")).await;
        assert_eq!(found, pairs(&[(name, value)]), "{path}");
    }
    let one = scene
        .api
        .get(&format!("{pods}/web-1/load?metricLabelSelector=path"))
        .await
        .ok();
    assert_eq!(one["kind"], "MetricValueList");
    assert_eq!(one["apiVersion"], "custom.metrics.k8s.io/v1beta2");
    let item = &one["items"][0];
    let object =
        json!({"kind": "Pod", "namespace": "default", "name": "web-1", "apiVersion": "v1"});
    assert_eq!(item["describedObject"], object);
    let selector = json!({"matchExpressions": [{"key": "path", "operator": "Exists"}]});
    assert_eq!(
        item["metric"],
        json!({"name": "load", "selector": selector})
    );
    assert!(item["timestamp"].is_string());
    let before = scene
        .api
        .get(&format!("{pods}/web-1/load").replace("v1beta2", "v1beta1"))
        .await
        .ok();
    assert_eq!(before["apiVersion"], "custom.metrics.k8s.io/v1beta1");
    assert_eq!(before["items"][0]["metricName"], "load");
    assert_eq!(before["items"][0]["selector"], Value::Null);
    let request = Request::get(format!("{pods}/web-1/load")).header(ACCEPT, PROTOBUF);
    let reply = scene.api.send(request, "").await;
    let unknown = envelope::read(&reply.body).unwrap();
    let list = MetricValueList::decode(unknown.raw.as_ref()).unwrap();
    assert_eq!(list.items[0].value.string, "1250m");
}

#[tokio::test]
async fn an_external_metric_has_a_value_for_each_series_of_its_namespace() {
    let Some(scene) = Scene::start().await else {
        return;
    };
    let queue = format!("{EXTERNAL}/queue");
    assert_eq!(
        scene.values(&queue).await,
        pairs(&[("mail", "12"), ("print", "5")])
    );
    let mail = format!("{queue}?labelSelector=name%3Dmail");
    assert_eq!(scene.values(&mail).await, pairs(&[("mail", "12")]));
    assert_eq!(
        scene.values(&format!("{EXTERNAL}/all")).await,
        pairs(&[("", "116")])
    );
    let list = scene.api.get(&mail).await.ok();
    assert_eq!(list["kind"], "ExternalMetricValueList");
    assert_eq!(list["apiVersion"], "external.metrics.k8s.io/v1beta1");
    assert_eq!(list["items"][0]["metricName"], "queue");
    assert_eq!(list["items"][0]["metricLabels"]["namespace"], "default");
}

#[tokio::test]
async fn what_has_no_value_is_an_error_and_never_nothing() {
    let Some(scene) = Scene::start().await else {
        return;
    };
    let refused = async |path: &str, code, reason| {
        let reply = scene.api.get(path).await;
        reply.refused(code, reason)
    };
    let pods = format!("{CUSTOM}/namespaces/default/pods");
    for (path, message) in [
        (
            "web-1/other",
            "the server could not find the metric other for pods",
        ),
        (
            "web-3/load",
            "the server could not find the metric load for pods web-3",
        ),
        (
            "web-1/broken",
            "the server could not find the metric broken for pods web-1",
        ),
        (
            "web-1%22%7D%20or%20load%7Bx%3D%22/load",
            "the server could not find the metric load for pods web-1\"} or load{x=\"",
        ),
    ] {
        let found = refused(&format!("{pods}/{path}"), 404, "NotFound").await;
        assert_eq!(found, message);
    }
    let prefix = "Internal error occurred: ";
    let several = refused(&format!("{pods}/web-1/raw"), 500, "InternalError").await;
    assert!(
        several.starts_with(prefix) && several.contains("several series"),
        "{several}"
    );
    let failed = format!("{prefix}unable to fetch metrics: ");
    let invalid = refused(&format!("{pods}/web-1/invalid"), 500, "InternalError").await;
    let expected = format!("{failed}Prometheus answered 400 Bad Request: ");
    assert!(invalid.starts_with(&expected), "{invalid}");
    let scalar = refused(&format!("{EXTERNAL}/scalar"), 500, "InternalError").await;
    assert_eq!(
        scalar,
        format!("{failed}the query does not return an instant vector")
    );
    let label = format!("{EXTERNAL}/queue?labelSelector=example.com/a%3Db");
    refused(&label, 400, "BadRequest").await;
    let queue = format!("{EXTERNAL}/queue");
    scene.prometheus.freeze();
    let late = refused(&queue, 500, "InternalError").await;
    assert_eq!(late, format!("{failed}no answer of Prometheus within 2s"));
}

#[tokio::test]
async fn a_prometheus_that_does_not_run_is_an_error() {
    let url = format!("http://127.0.0.1:{}", free_port());
    let api = gateway(&settings(&url)).await;
    let refused = api.get(&format!("{EXTERNAL}/queue")).await;
    assert_eq!(
        refused.refused(500, "InternalError"),
        "Internal error occurred: unable to fetch metrics: connection refused"
    );
}

#[tokio::test]
async fn discovery_lists_the_metrics_of_the_rules_and_no_group_without_any() {
    let mut settings = settings("http://127.0.0.1:9");
    settings.timeout = Duration::from_secs(1);
    let api = gateway(&settings).await;
    let groups = api.get("/apis").await.ok();
    let of = |list: &Value, name: &str| {
        let mut all = list.as_array().unwrap().iter();
        all.find(|one| one["name"] == name || one["metadata"]["name"] == name)
            .cloned()
    };
    let custom = of(&groups["groups"], "custom.metrics.k8s.io").unwrap();
    assert_eq!(custom["preferredVersion"]["version"], "v1beta2");
    assert_eq!(
        api.get("/apis/custom.metrics.k8s.io").await.ok()["versions"][1]["version"],
        "v1beta1"
    );
    let resources = api.get(CUSTOM).await.ok();
    let pods = of(&resources["resources"], "pods/load").unwrap();
    assert_eq!(
        (&pods["kind"], &pods["namespaced"]),
        (&json!("MetricValueList"), &json!(true))
    );
    assert_eq!(
        of(&resources["resources"], "nodes/load").unwrap()["namespaced"],
        false
    );
    let external = api.get("/apis/external.metrics.k8s.io/v1beta1").await.ok();
    let queue = of(&external["resources"], "queue").unwrap();
    assert_eq!(
        (&queue["kind"], &queue["verbs"]),
        (&json!("ExternalMetricValueList"), &json!(["get"]))
    );
    let request = Request::get("/apis").header(ACCEPT, AGGREGATED);
    let document = api.send(request, "").await.ok();
    let custom = of(&document["items"], "custom.metrics.k8s.io").unwrap();
    let resources = custom["versions"][0]["resources"].as_array().unwrap();
    let pods: Vec<_> = resources
        .iter()
        .filter(|one| one["resource"] == "pods")
        .collect();
    assert_eq!(pods[0]["subresources"].as_array().unwrap().len(), 4);
    assert_eq!((pods.len(), &pods[0]["verbs"]), (1, &json!([])));

    settings.external.clear();
    let api = gateway(&settings).await;
    let groups = api.get("/apis").await.ok();
    assert!(of(&groups["groups"], "custom.metrics.k8s.io").is_some());
    assert_eq!(of(&groups["groups"], "external.metrics.k8s.io"), None);
    let api = Api::start().await;
    let groups = api.get("/apis").await.ok();
    assert_eq!(of(&groups["groups"], "custom.metrics.k8s.io"), None);
    let paths = [
        "/apis/custom.metrics.k8s.io".to_owned(),
        CUSTOM.to_owned(),
        format!("{EXTERNAL}/queue"),
    ];
    for path in paths {
        let message = api.get(&path).await.refused(404, "NotFound");
        assert_eq!(message, "the server could not find the requested resource");
    }
}
