//! What mutating webhooks change.

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::{Answer, Plane, denial, merged, rule, warnings};
use crate::http::api::{CONFIGMAPS, configmap};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    })
}

/// Adds the datum `x` after the number of data.
fn count(request: &Value) -> Value {
    let data = request["object"]["data"].as_object().unwrap();
    let path = format!("/data/x{}", data.len());
    json!([{ "op": "add", "path": path, "value": "y" }])
}

#[tokio::test]
async fn webhooks_change_objects_in_the_order_of_configurations_and_then_of_webhooks() {
    let plane = Plane::start().await;
    let append = Answer::Patch(|request| {
        let seen = request["object"]["data"]["a"].as_str().unwrap();
        json!([{ "op": "replace", "path": "/data/a", "value": format!("{seen}+") }])
    });
    let webhook = |name: &str| plane.webhook(name, append, json!({}));
    let plural = "mutatingwebhookconfigurations";
    plane
        .configure(plural, "two", &[webhook("d"), webhook("c")])
        .await;
    plane
        .configure(plural, "one", &[webhook("b"), webhook("a")])
        .await;
    assert_eq!(plane.create().await.ok()["data"]["a"], "b++++");
    assert_eq!(plane.server.paths(), ["b", "a", "d", "c"]);
}

#[tokio::test]
async fn webhooks_see_an_object_with_defaults_and_defaults_are_set_again() {
    let sidecar = Answer::Patch(|request| {
        assert_eq!(request["object"]["spec"]["restartPolicy"], "Always");
        assert_eq!(request["object"]["spec"]["serviceAccountName"], "default");
        assert_eq!(request["object"]["metadata"].get("uid"), None);
        json!([
            { "op": "add", "path": "/spec/containers/-", "value": { "name": "s", "image": "s:1" } },
            { "op": "add", "path": "/metadata/labels", "value": { "injected": "yes" } },
        ])
    });
    let plane = Plane::mutating(sidecar, json!({ "rules": [rule(&["pods"])] })).await;
    let created = plane.api.post(PODS, pod("a")).await.ok();
    let sidecar = &created["spec"]["containers"][1];
    assert_eq!(sidecar["imagePullPolicy"], "IfNotPresent");
    assert_eq!(sidecar["terminationMessagePath"], "/dev/termination-log");
    assert_eq!(created["metadata"]["labels"]["injected"], "yes");
    let stored = plane.api.get(&format!("{PODS}/a")).await.ok();
    assert_eq!(stored["spec"], created["spec"]);
}

/// The gateway's own admission sees the object again.
#[tokio::test]
async fn what_webhooks_add_is_completed_as_what_users_send() {
    let ranges = "/api/v1/namespaces/default/limitranges";
    let sidecar = Answer::Patch(
        |_| json!([{ "op": "add", "path": "/spec/containers/-", "value": { "name": "s", "image": "s" } }]),
    );
    let plane = Plane::mutating(sidecar, json!({ "rules": [rule(&["pods"])] })).await;
    let limit =
        json!({ "type": "Container", "default": { "cpu": "1" }, "defaultRequest": { "cpu": "1" } });
    let range = json!({ "metadata": { "name": "r" }, "spec": { "limits": [limit] } });
    plane.api.post(ranges, range).await.ok();
    plane.api.get(&format!("{ranges}/r")).await.ok();
    let created = plane.api.post(PODS, pod("a")).await.ok();
    for container in created["spec"]["containers"].as_array().unwrap() {
        assert_eq!(
            container["resources"]["requests"]["cpu"], "1",
            "{container}"
        );
    }
}

#[tokio::test]
async fn the_changed_object_is_validated_and_not_the_one_that_was_sent() {
    let name = Answer::Patch(|_| json!([{ "op": "add", "path": "/data/not valid!", "value": "" }]));
    let plane = Plane::mutating(name, json!({})).await;
    plane.create().await.refused(422, "Invalid");
    let heal = Answer::Patch(
        |request| match request["object"]["data"].get("not valid!") {
            Some(_) => json!([{ "op": "remove", "path": "/data/not valid!" }]),
            None => json!([]),
        },
    );
    plane.server.answer("a", heal);
    let broken = |name: &str| merged(configmap(name), json!({ "data": { "not valid!": "" } }));
    plane.api.post(CONFIGMAPS, broken("a")).await.ok();
    let updated = plane.api.put(&format!("{CONFIGMAPS}/a"), broken("a")).await;
    assert_eq!(updated.ok().get("data"), None);
}

#[tokio::test]
async fn validating_webhooks_and_policies_see_what_mutating_ones_have_changed() {
    let plane = Plane::mutating(Answer::Patch(count), json!({})).await;
    let seen = Answer::Deny(|| json!({ "message": "no" }));
    let webhook = plane.webhook("v", seen, json!({}));
    let plural = "validatingwebhookconfigurations";
    plane.configure(plural, "validating", &[webhook]).await;
    assert!(denial(&plane.create().await).is_some());
    let calls = plane.server.calls();
    let objects = calls.iter().map(|call| &call.review["request"]["object"]);
    let data: Vec<_> = objects.map(|object| object["data"].clone()).collect();
    assert_eq!(data, [json!({ "a": "b" }), json!({ "a": "b", "x1": "y" })]);
    let uid = &calls[1].review["request"]["object"]["metadata"]["uid"];
    assert!(uid.is_string(), "{uid}");
}

#[tokio::test]
async fn every_kind_of_update_is_changed() {
    let mark = Answer::Patch(|request| match request["operation"].as_str() {
        Some("UPDATE") => json!([{ "op": "add", "path": "/data/mark", "value": "y" }]),
        _ => json!([]),
    });
    let plane = Plane::mutating(mark, json!({})).await;
    let path = format!("{CONFIGMAPS}/a");
    let data = |value: &str| json!({ "data": { "a": value } });
    let apply = || {
        Request::patch(format!("{path}?fieldManager=test&force=true"))
            .header(CONTENT_TYPE, "application/apply-patch+yaml")
    };
    let applied = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "f" } });
    for at in 0..4 {
        plane.create().await.ok();
        let reply = match at {
            0 => {
                plane
                    .api
                    .put(&path, merged(configmap("a"), data("c")))
                    .await
            }
            1 => plane.api.patch(&path, "merge-patch+json", data("c")).await,
            2 => {
                plane
                    .api
                    .patch(&path, "strategic-merge-patch+json", data("c"))
                    .await
            }
            _ => plane.api.send(apply(), applied.to_string()).await,
        };
        assert_eq!(reply.ok()["data"]["mark"], "y", "{at}");
        assert_eq!(plane.api.get(&path).await.ok()["data"]["mark"], "y");
        plane.api.delete(&path).await.ok();
    }
}

#[tokio::test]
async fn an_update_to_what_is_stored_writes_nothing_and_is_sent_once() {
    let mark = Answer::Patch(|_| json!([{ "op": "add", "path": "/data/mark", "value": "y" }]));
    let plane = Plane::mutating(mark, json!({})).await;
    let created = plane.create().await.ok();
    plane.server.calls();
    let updated = plane
        .api
        .put(&format!("{CONFIGMAPS}/a"), configmap("a"))
        .await
        .ok();
    let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(revision(&updated), revision(&created));
    assert_eq!(plane.server.paths(), ["a"]);
}

/// As upstream: the managers of a request are recorded before admission.
#[tokio::test]
async fn nobody_owns_what_webhooks_have_added() {
    let mark = Answer::Patch(|_| json!([{ "op": "add", "path": "/data/mark", "value": "y" }]));
    let plane = Plane::mutating(mark, json!({})).await;
    let created = plane.create().await.ok();
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert!(fields.get("f:a").is_some(), "{created}");
    assert_eq!(fields.get("f:mark"), None);
}

#[tokio::test]
async fn managed_fields_that_a_webhook_breaks_are_restored() {
    let broken = Answer::Patch(|_| {
        let entry = json!({ "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "Other" });
        json!([{ "op": "replace", "path": "/metadata/managedFields", "value": [entry] }])
    });
    let plane = Plane::mutating(broken, json!({})).await;
    let reply = plane.create().await;
    let created = reply.ok();
    assert_ne!(created["metadata"]["managedFields"][0]["manager"], "m");
    let told = warnings(&reply);
    assert!(
        told[0].starts_with(".metadata.managedFields was in an invalid state"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_name_is_generated_after_webhooks_have_seen_the_object() {
    let plane = Plane::mutating(Answer::Patch(count), json!({})).await;
    let body = json!({ "metadata": { "generateName": "a-" }, "data": {} });
    let body = merged(body, json!({ "data": { "a": "b" } }));
    let created = plane.api.post(CONFIGMAPS, body).await.ok();
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("a-") && name.len() > 2, "{name}");
    let request = plane.server.request();
    assert_eq!(request.get("name"), None);
    assert_eq!(request["object"]["metadata"].get("name"), None);
    assert_eq!(created["data"]["x1"], "y");
}

/// Three webhooks, of which the first two may be called again; the second and the third change the object.
#[tokio::test]
async fn webhooks_are_called_again_after_others_have_changed_the_object() {
    let plane = Plane::start().await;
    let once = Answer::Patch(|request| match request["object"]["data"].get("x") {
        None => json!([{ "op": "add", "path": "/data/x", "value": "y" }]),
        Some(_) => json!([]),
    });
    let again = json!({ "reinvocationPolicy": "IfNeeded" });
    let webhooks = [
        plane.webhook("a", Answer::Allow, again.clone()),
        plane.webhook("b", once, again),
        plane.webhook("c", Answer::Allow, json!({})),
    ];
    plane.mutate(&webhooks).await;
    plane.create().await.ok();
    assert_eq!(plane.server.paths(), ["a", "b", "c", "a"]);
    let path = format!("{CONFIGMAPS}/a");
    let patch = json!({ "data": { "a": "c" } });
    plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(plane.server.paths(), ["a", "b", "c"]);
}

#[tokio::test]
async fn what_may_not_be_changed_stays() {
    let plane = Plane::mutating(
        Answer::Patch(|request| match request["operation"].as_str() {
            Some("UPDATE") => json!([
                { "op": "replace", "path": "/metadata/uid", "value": "mine" },
                { "op": "add", "path": "/status", "value": { "loadBalancer": { "ingress": [{ "ip": "1.2.3.4" }] } } },
            ]),
            _ => json!([]),
        }),
        json!({ "rules": [rule(&["services"])] }),
    )
    .await;
    let service = json!({
        "metadata": { "name": "a" },
        "spec": { "clusterIP": "None", "ports": [{ "port": 80 }], "selector": { "a": "b" } },
    });
    let created = plane.api.post(SERVICES, service).await.ok();
    let path = format!("{SERVICES}/a");
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let patched = plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(patched["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(patched["status"], created["status"]);
    assert_eq!(patched["metadata"]["labels"]["a"], "b");
}
