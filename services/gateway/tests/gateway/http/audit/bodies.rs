//! The bodies in events.

use http::Request;
use http::header::ACCEPT;
use serde_json::{Value, json};

use super::Audit;
use crate::http::api::{Api, CONFIGMAPS, PROTOBUF, configmap};

/// Returns the bodies of the last event.
async fn bodies(audit: &Audit) -> [Value; 2] {
    let event = audit.events().await.pop().unwrap();
    audit.forget().await;
    assert_eq!(event["stage"], "ResponseComplete");
    ["requestObject", "responseObject"].map(|name| event[name].clone())
}

#[tokio::test]
async fn bodies_are_recorded_as_the_level_says() {
    let audit = Audit::of(
        "- level: Request
  verbs: [create]
- level: RequestResponse
",
    );
    let api = audit.api().await;
    api.post(CONFIGMAPS, configmap("a")).await.ok();
    let [request, response] = bodies(&audit).await;
    assert_eq!(
        (&request["kind"], &request["data"]["a"]),
        (&json!("ConfigMap"), &json!("b"))
    );
    assert_eq!(response, Value::Null);
    let path = format!("{CONFIGMAPS}/a");
    let patch = json!({ "data": { "a": "c" } });
    api.patch(&path, "merge-patch+json", patch.clone())
        .await
        .ok();
    let [request, response] = bodies(&audit).await;
    assert_eq!(request, patch);
    assert_eq!(response["data"]["a"], "c");
    assert!(response["metadata"]["managedFields"].is_array());
    api.get(CONFIGMAPS).await.ok();
    let [request, response] = bodies(&audit).await;
    assert_eq!(
        (request, &response["kind"]),
        (Value::Null, &json!("ConfigMapList"))
    );
    assert_eq!(response["items"][0]["data"]["a"], "c");
    api.get(&format!("{CONFIGMAPS}/b"))
        .await
        .refused(404, "NotFound");
    let [_, response] = bodies(&audit).await;
    assert_eq!(
        (&response["kind"], &response["code"]),
        (&json!("Status"), &json!(404))
    );
    api.delete(&path).await.ok();
    let [_, response] = bodies(&audit).await;
    assert_eq!(response["status"], "Success");
}

/// Returns the response of the last event of a read in a format.
async fn read(audit: &Audit, api: &Api, path: &str, accept: &str) -> Value {
    let request = Request::get(path).header(ACCEPT, accept);
    let reply = api.send(request, axum::body::Body::empty()).await;
    assert_eq!(reply.code, 200);
    let [_, response] = bodies(audit).await;
    response
}

#[tokio::test]
async fn bodies_of_every_encoding_are_json_without_managed_fields() {
    let audit = Audit::of(
        "- level: RequestResponse
  omitManagedFields: true
",
    );
    let api = audit.api().await;
    api.configmap("a").await;
    audit.forget().await;
    let path = format!("{CONFIGMAPS}/a");
    for accept in [PROTOBUF, "application/json", "application/yaml"] {
        let object = read(&audit, &api, &path, accept).await;
        assert_eq!(object["data"]["a"], "b", "{accept}");
        assert_eq!(object["metadata"]["managedFields"], Value::Null, "{accept}");
        let list = read(&audit, &api, CONFIGMAPS, accept).await;
        assert_eq!(list["items"][0]["data"]["a"], "b", "{accept}");
        assert_eq!(
            list["items"][0]["metadata"]["managedFields"],
            Value::Null,
            "{accept}"
        );
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = read(&audit, &api, CONFIGMAPS, table).await;
    assert_eq!(
        table["rows"][0]["object"]["metadata"]["managedFields"],
        Value::Null
    );
}

/// Bodies with credentials are not recorded by a rule for everything.
#[tokio::test]
async fn secrets_and_tokens_have_no_bodies_unless_a_rule_names_them() {
    let audit = Audit::at("RequestResponse");
    let api = audit.api().await;
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "hidden-value" } });
    let secrets = "/api/v1/namespaces/default/secrets";
    api.post(secrets, secret).await.ok();
    api.get(secrets).await.ok();
    let review = json!({ "spec": { "token": "hidden-value" } });
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    api.post(reviews, review).await.ok();
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = api.post(token, json!({ "spec": {} })).await.ok();
    let token = token["status"]["token"].as_str().unwrap();
    let events = audit.events().await;
    assert_eq!(events.len(), 8);
    for event in events {
        assert_eq!(event["level"], "Metadata");
        let text = event.to_string();
        assert!(
            !text.contains("hidden-value") && !text.contains(token),
            "{text}"
        );
    }
    let audit = Audit::of("- {level: Request, resources: [{resources: [secrets]}]}\n");
    let api = audit.api().await;
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "named" } });
    api.post(secrets, secret).await.ok();
    assert_eq!(bodies(&audit).await[0]["stringData"]["a"], "named");
}
