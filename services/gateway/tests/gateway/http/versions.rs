//! Kinds that are other versions of a stored one: Events of events.k8s.io/v1 and autoscalers of autoscaling/v1.

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::api::{Api, PROTOBUF};

const CORE: &str = "/api/v1/namespaces/default/events";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

fn event(name: &str) -> Value {
    json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": name },
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "regarding": { "kind": "Pod", "namespace": "default", "name": "web" },
        "reportingController": "acme.io/test", "reportingInstance": "test-0",
        "action": "Test", "reason": "Tested", "type": "Normal", "note": "it was tested",
    })
}

fn autoscaler(name: &str) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": { "name": name },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 60,
        },
    })
}

#[tokio::test]
async fn an_event_has_the_form_of_the_group_that_names_it() {
    let api = Api::start().await;
    let created = api.post(EVENTS, event("a")).await.ok();
    assert_eq!(created["apiVersion"], "events.k8s.io/v1");
    assert_eq!(created["note"], "it was tested");
    let core = api.get(&format!("{CORE}/a")).await.ok();
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["message"], "it was tested");
    assert_eq!(core["involvedObject"]["name"], "web");
    assert_eq!(core["reportingComponent"], "acme.io/test");
    let list = api.get(EVENTS).await.ok();
    assert_eq!(list["apiVersion"], "events.k8s.io/v1");
    assert_eq!(list["kind"], "EventList");
    assert_eq!(list["items"][0]["note"], "it was tested");
    let selected = |selector: &str| format!("{EVENTS}?fieldSelector={selector}");
    let both = selected("regarding.name=web,reportingController=acme.io/test");
    let found = api.get(&both).await;
    assert_eq!(found.ok()["items"].as_array().map(Vec::len), Some(1));
    let none = api.get(&selected("regarding.name=other")).await.ok();
    assert_eq!(none["items"], json!([]));
    let unknown = api.get(&selected("involvedObject.name=web")).await;
    let message = unknown.refused(400, "BadRequest");
    assert!(message.contains("field label not supported"), "{message}");
}

#[tokio::test]
async fn new_events_are_validated_strictly() {
    let api = Api::start().await;
    let mut event = event("a");
    event["deprecatedCount"] = 1.into();
    event["eventTime"] = Value::Null;
    event["type"] = "Odd".into();
    let message = api.post(EVENTS, event).await.refused(422, "Invalid");
    for part in [
        "Event.events.k8s.io \"a\" is invalid",
        "count: Invalid value: \"\": needs to be unset",
        "eventTime: Required value",
        "has invalid value: Odd",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn an_event_of_the_group_can_only_change_its_series() {
    let api = Api::start().await;
    api.post(EVENTS, event("a")).await.ok();
    let path = format!("{EVENTS}/a");
    let series =
        json!({ "series": { "count": 2, "lastObservedTime": "2026-01-02T03:05:05.000006Z" } });
    let patched = api.patch(&path, "strategic-merge-patch+json", series).await;
    assert_eq!(patched.ok()["series"]["count"], 2);
    let note = json!([{ "op": "replace", "path": "/note", "value": "b" }]);
    let refused = api.patch(&path, "json-patch+json", note).await;
    let message = refused.refused(422, "Invalid");
    assert!(message.contains("message: Invalid value"), "{message}");
    let few = json!({ "series": { "count": 1 } });
    let refused = api.patch(&path, "merge-patch+json", few).await;
    let message = refused.refused(422, "Invalid");
    assert!(message.contains("should be at least 2"), "{message}");
}

#[tokio::test]
async fn errors_name_the_requested_group() {
    let api = Api::start().await;
    let message = api
        .get(&format!("{EVENTS}/x"))
        .await
        .refused(404, "NotFound");
    assert_eq!(message, r#"events.events.k8s.io "x" not found"#);
    let refused = api.delete(&format!("{EVENTS}/x")).await;
    assert!(
        refused
            .refused(404, "NotFound")
            .starts_with("events.events.k8s.io")
    );
    api.post(EVENTS, event("a")).await.ok();
    let again = api.post(EVENTS, event("a")).await;
    let message = again.refused(409, "AlreadyExists");
    assert_eq!(message, r#"events.events.k8s.io "a" already exists"#);
    let wrong = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "b" } });
    api.post(EVENTS, wrong).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_watch_sends_the_form_of_the_requested_version() {
    let api = Api::start().await;
    api.post(V1, autoscaler("web")).await.ok();
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let request = Request::get(format!("{V1}?{query}"));
    let mut body = api.open(request, Body::empty()).await.into_body();
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let frame = body.frame().await.unwrap().unwrap();
        text.extend_from_slice(&frame.into_data().unwrap());
    }
    let events = text.split(|byte| *byte == b'\n').take(2);
    let events: Vec<Value> = events
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(events[0]["type"], "ADDED");
    let object = &events[0]["object"];
    assert_eq!(object["apiVersion"], "autoscaling/v1");
    assert_eq!(object["spec"]["targetCPUUtilizationPercentage"], 60);
    assert_eq!(events[1]["type"], "BOOKMARK");
    let bookmark = &events[1]["object"];
    assert_eq!(bookmark["apiVersion"], "autoscaling/v1");
    assert_eq!(
        bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

#[tokio::test]
async fn both_versions_of_an_autoscaler_are_one_object() {
    let api = Api::start().await;
    api.post(V1, autoscaler("web")).await.ok();
    let path = format!("{V2}/web");
    let v2 = api.get(&path).await.ok();
    let target = &v2["spec"]["metrics"][0]["resource"]["target"];
    assert_eq!(target["averageUtilization"], 60);
    let behavior =
        json!({ "spec": { "behavior": { "scaleDown": { "stabilizationWindowSeconds": 7 } } } });
    api.patch(&path, "merge-patch+json", behavior).await.ok();
    let path = format!("{V1}/web");
    let mut v1 = api.get(&path).await.ok();
    let annotation = "autoscaling.alpha.kubernetes.io/behavior";
    let text = v1["metadata"]["annotations"][annotation].as_str().unwrap();
    assert!(text.contains(r#""StabilizationWindowSeconds":7"#), "{text}");
    v1["spec"]["maxReplicas"] = 5.into();
    assert_eq!(api.put(&path, v1).await.ok()["spec"]["maxReplicas"], 5);
    let v2 = api.get(&format!("{V2}/web")).await.ok();
    let kept = &v2["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"];
    assert_eq!(*kept, 7);
    assert!(v2["metadata"]["annotations"][annotation].is_null());
    let status = json!({ "status": { "currentReplicas": 2, "desiredReplicas": 2 } });
    let part = format!("{path}/status");
    let patched = api.patch(&part, "merge-patch+json", status).await;
    assert_eq!(patched.ok()["apiVersion"], "autoscaling/v1");
    let gone = api.delete(&path).await.ok();
    assert_eq!(gone["details"]["group"], "autoscaling");
}

#[tokio::test]
async fn another_version_has_every_format_of_a_stored_kind() {
    let api = Api::start().await;
    api.post(EVENTS, event("a")).await.ok();
    for (path, list) in [(EVENTS.to_owned(), "List"), (format!("{EVENTS}/a"), "")] {
        let table = api.get_as(&path, TABLE).await.ok();
        assert_eq!(table["columnDefinitions"][0]["name"], "Last Seen");
        assert_eq!(table["rows"][0]["cells"][3], "pod/web");
        let protobuf = api.get_as(&path, PROTOBUF).await;
        assert!(protobuf.body.starts_with(b"k8s\0"));
        let text = String::from_utf8_lossy(&protobuf.body).into_owned();
        assert!(text.contains("events.k8s.io/v1"), "{text}");
        let yaml = api.get_as(&path, "application/yaml").await;
        let text = String::from_utf8_lossy(&yaml.body).into_owned();
        assert!(text.contains("note: it was tested"), "{text}");
        let partial = format!("application/json;as=PartialObjectMetadata{list};v=v1;g=meta.k8s.io");
        assert!(api.get_as(&path, &partial).await.code.is_success());
    }
    let all = api.delete(EVENTS).await.ok();
    assert_eq!(all["apiVersion"], "events.k8s.io/v1");
    assert_eq!(all["items"][0]["note"], "it was tested");
    assert_eq!(api.get(CORE).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn discovery_lists_both_versions_and_prefers_the_newer() {
    let api = Api::start().await;
    let group = api.get("/apis/autoscaling").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v2");
    let versions = group["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = api.get_as("/apis", aggregated).await.ok();
    let mut groups = all["items"].as_array().unwrap().iter();
    let group = groups.find(|group| group["metadata"]["name"] == "autoscaling");
    assert_eq!(group.unwrap()["versions"][0]["version"], "v2");
    for version in ["autoscaling/v1", "events.k8s.io/v1"] {
        let kinds = api.get(&format!("/apis/{version}")).await.ok();
        assert_eq!(
            kinds["resources"][0]["verbs"].as_array().map(Vec::len),
            Some(8)
        );
        let openapi = api.get(&format!("/openapi/v3/apis/{version}")).await.ok();
        assert!(!openapi["paths"].as_object().unwrap().is_empty());
    }
}
