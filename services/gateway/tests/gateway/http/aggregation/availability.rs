//! The condition `Available`.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use super::{Discovery, FLUNDERS, Plane, SERVICE, SERVICES};

const CORE_SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

#[tokio::test]
async fn the_condition_follows_the_service_and_its_endpoints() {
    let plane = Plane::unregistered(Discovery::List).await;
    let api = &plane.api;
    let mut spec = plane.spec();
    spec["service"]["port"] = json!(443);
    plane.register(spec, false).await;
    let missing = plane.until("ServiceNotFound").await;
    assert_eq!(missing["status"], "False");
    assert_eq!(
        missing["message"],
        r#"service/extension in "default" is not present"#
    );

    let port = json!({ "port": 8443, "name": "https" });
    let service = json!({ "metadata": { "name": "extension" }, "spec": { "ports": [port] } });
    api.post(CORE_SERVICES, service).await.ok();
    plane.until("ServicePortError").await;
    let path = format!("{CORE_SERVICES}/extension");
    let ports = json!({ "spec": { "ports": [{ "port": 443, "name": "https" }] } });
    api.patch(&path, "merge-patch+json", ports).await.ok();
    plane.until("EndpointsNotFound").await;
    let slice = json!({
        "metadata": { "name": "a", "labels": { "kubernetes.io/service-name": "extension" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": ["10.0.0.1"], "conditions": { "ready": false } }],
        "ports": [{ "name": "https", "port": 443 }],
    });
    api.post(SLICES, slice).await.ok();
    plane.until("MissingEndpoints").await;
    let refused = api.get(FLUNDERS).await;
    assert_eq!(refused.code, 503);
    assert_eq!(refused.body, "service unavailable\n");

    api.delete(&path).await.ok();
    plane.serve().await;
    let port = json!({ "spec": { "service": { "port": plane.extension.server.port } } });
    api.patch(SERVICE, "merge-patch+json", port).await.ok();
    let passed = plane.until("Passed").await;
    assert_eq!(
        (&passed["status"], &passed["message"]),
        (&"True".into(), &"all checks passed".into())
    );
    api.get(FLUNDERS).await.ok();
}

#[tokio::test]
async fn a_server_that_answers_with_an_error_is_not_available() {
    let plane = Plane::unregistered(Discovery::Broken).await;
    plane.register(plane.spec(), true).await;
    let failed = plane.until("FailedDiscoveryCheck").await;
    let port = plane.extension.server.port;
    let url = format!("https://extension.default.svc:{port}/apis/wardle.example.com/v1alpha1");
    let message = format!("failing or missing response from {url}: bad status from {url}: 500");
    assert_eq!(failed["message"], message);
    plane.extension.discovers(Discovery::List);
    plane.until("Passed").await;
}

#[tokio::test]
async fn a_condition_that_says_the_same_is_not_written_and_others_stay() {
    let plane = Plane::start(Discovery::List).await;
    let api = &plane.api;
    let other = json!({ "type": "StatusUpdated", "status": "True", "reason": "E2E", "message": "Set from e2e test" });
    let mut service = api.get(SERVICE).await.ok();
    let conditions = service["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(other);
    let updated = api.put(&format!("{SERVICE}/status"), service).await.ok();
    let version = updated["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!(
        "{SERVICES}?watch=true&fieldSelector=metadata.name%3Dv1alpha1.wardle.example.com&resourceVersion={version}"
    );
    let watch = api.open(http::Request::get(watch), "").await;
    // A check follows each change.
    let path = format!("{CORE_SERVICES}/extension");
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    api.patch(&path, "merge-patch+json", label).await.ok();
    api.delete(&path).await.ok();
    let frame = watch.into_body().frame().await.unwrap().unwrap();
    let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
    let conditions = &event["object"]["status"]["conditions"];
    assert_eq!(conditions[0]["reason"], "ServiceNotFound", "{event}");
    assert_eq!(conditions[1]["reason"], "E2E");
}

#[tokio::test]
async fn a_version_without_a_service_is_local() {
    let plane = Plane::start(Discovery::List).await;
    let local = json!({ "spec": { "service": null, "caBundle": null } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", local)
        .await
        .ok();
    let condition = plane.until("Local").await;
    assert_eq!(condition["status"], "True");
    plane.api.get(FLUNDERS).await.refused(404, "NotFound");
}
