//! Webhooks that answer wrongly, late or not at all.

use std::time::Duration;

use serde_json::json;
use setpoint_store::Store as _;

use super::super::webhook::{Answer, Webhook};
use super::{
    Change, DEFINITION, FOLDER, LONG, METADATA, METADATA_LIST, PREFIX, Plane, V1, V2, first,
};

#[tokio::test]
async fn an_answer_that_is_not_one_to_the_review_is_refused() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let cases: [(Change, &str); 8] = [
        (
            |answer| answer["response"]["uid"] = "other".into(),
            "failed: expected response.uid=",
        ),
        (
            |answer| answer["kind"] = "Pod".into(),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Pod",
        ),
        (
            |answer| answer["response"]["convertedObjects"] = json!([]),
            "returned 0 objects, expected 1",
        ),
        (
            |answer| {
                answer["response"]["result"] = json!({ "status": "Failure", "message": "no way" })
            },
            "failed: no way",
        ),
        (
            |answer| answer["response"]["result"] = json!({}),
            "failed: response.result.status was '', not 'Success'",
        ),
        (
            |answer| {
                answer["response"]["convertedObjects"][0]["apiVersion"] =
                    "stable.example.com/v3".into()
            },
            "returned invalid object at index 0: invalid groupVersion (expected stable.example.com/v2, received stable.example.com/v3)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = "b".into(),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |answer| {
                answer["response"]["convertedObjects"][0]["metadata"]["labels"] =
                    json!({ "a b": "" })
            },
            "returned invalid metadata: metadata.labels: Invalid value",
        ),
    ];
    for (change, expected) in cases {
        plane.webhook.answer(Answer::Changed(change));
        let read = plane.api.get(&format!("{V2}/a")).await;
        let message = read.refused(500, "InternalError");
        assert!(
            message.starts_with(&format!("{PREFIX}{expected}")),
            "{message}"
        );
    }
    plane.webhook.answer(Answer::Changed(|answer| {
        answer["response"]["convertedObjects"][0]["metadata"]["uid"] = "other".into();
    }));
    let message = plane.fails("a").await;
    assert!(message.contains("must have the same UID"), "{message}");
}

#[tokio::test]
async fn only_labels_and_annotations_are_taken_from_the_webhook() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Changed(|answer| {
        let metadata = &mut answer["response"]["convertedObjects"][0]["metadata"];
        metadata["labels"] = json!({ "by": "webhook" });
        metadata["finalizers"] = json!(["example.com/held"]);
        metadata["generation"] = 9.into();
    }));
    let metadata = plane.api.get(&format!("{V2}/a")).await.ok()["metadata"].clone();
    assert_eq!(metadata["labels"], json!({ "by": "webhook" }));
    assert_eq!(
        (metadata.get("finalizers"), &metadata["generation"]),
        (None, &json!(1))
    );
}

#[tokio::test]
async fn an_unsuccessful_or_large_response_is_an_error() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Status(500, "it broke"));
    let url = format!(
        "https://localhost:{}/convert?timeout=30s",
        plane.webhook.port
    );
    let message = plane.fails("a").await;
    assert_eq!(
        message,
        format!(
            r#"{PREFIX}failed: an error on the server ("it broke") has prevented the request from succeeding"#
        )
    );
    plane.webhook.answer(Answer::Status(302, ""));
    let message = plane.fails("a").await;
    assert!(message.contains("the status code 302"), "{message}");
    plane.webhook.answer(Answer::Large(32 << 20));
    let message = plane.fails("a").await;
    let expected = format!(r#"{PREFIX}failed: Post "{url}": the response is larger than"#);
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_is_an_error() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    // Nothing listens on a port that was just bound and freed.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    plane
        .redefine(|definition| {
            let url = format!("https://127.0.0.1:{port}/convert");
            definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = url.into();
        })
        .await;
    let message = plane.fails("a").await;
    let expected = format!(
        r#"{PREFIX}failed: Post "https://127.0.0.1:{port}/convert?timeout=30s": dial tcp 127.0.0.1:{port}: connect: connection refused"#
    );
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_not_trusted() {
    let other = Webhook::start().await;
    let plane = Plane::with(LONG, |webhook| {
        let mut config = webhook.by_url();
        config["caBundle"] = other.ca_bundle.clone().into();
        config
    })
    .await;
    plane.create("a", "one:1").await;
    let message = plane.fails("a").await;
    assert!(
        message.ends_with(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        ),
        "{message}"
    );
    assert_eq!(plane.webhook.counts(), (0, 0), "nothing is sent");
    plane
        .redefine(|definition| {
            let config = &mut definition["spec"]["conversion"]["webhook"]["clientConfig"];
            config["caBundle"] = plane.webhook.ca_bundle.clone().into();
        })
        .await;
    plane.api.get(&format!("{V2}/a")).await.ok();
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_delays_no_other_request() {
    let plane = Plane::with(Duration::from_millis(300), Webhook::by_url).await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Nothing);
    let path = format!("{V2}/a");
    let mut hanging = std::pin::pin!(plane.api.get(&path));
    let other = async {
        plane.api.configmap("c").await;
        plane.create("b", "two:2").await;
    };
    tokio::select! {
        biased;
        () = other => {}
        _ = &mut hanging => panic!("it does not answer"),
    }
    let message = hanging.await.refused(500, "InternalError");
    assert!(message.ends_with("context deadline exceeded"), "{message}");
    plane.fails("a").await;
}

#[tokio::test]
async fn a_service_is_called_at_its_endpoints() {
    let plane = Plane::with(LONG, |webhook| {
        let service =
            json!({ "namespace": "default", "name": "webhook", "path": "/convert", "port": 443 });
        json!({ "service": service, "caBundle": webhook.ca_bundle })
    })
    .await;
    plane.create("a", "one:1").await;
    let path = format!("{V2}/a");
    let message = plane.fails("a").await;
    let url = "https://webhook.default.svc:443/convert?timeout=30s";
    assert_eq!(
        message,
        format!(r#"{PREFIX}failed: Post "{url}": service "webhook" not found"#)
    );
    let service = json!({
        "metadata": { "name": "webhook" },
        "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": plane.webhook.port }] },
    });
    plane
        .api
        .post("/api/v1/namespaces/default/services", service)
        .await
        .ok();
    let slice = |ready: bool| {
        json!({
            "metadata": { "name": "webhook-1", "namespace": "default", "labels": { "kubernetes.io/service-name": "webhook" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["127.0.0.1"], "conditions": { "ready": ready } }],
            "ports": [{ "name": "https", "port": plane.webhook.port }],
        })
    };
    plane.store_slice(slice(false)).await;
    let message = plane.fails("a").await;
    let expected = r#"no endpoints available for service "webhook""#;
    assert!(message.ends_with(expected), "{message}");
    plane.store_slice(slice(true)).await;
    assert_eq!(plane.api.get(&path).await.ok()["host"], "one");
}

#[tokio::test]
async fn deletions_go_on_while_the_webhook_is_broken() {
    let plane = Plane::start().await;
    let _background = plane.background();
    plane.create("a", "one:1").await;
    let mut held = first("b", "two:2");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    plane.api.post(V1, held).await.ok();
    plane.create("c", "three:3").await;
    plane.store_second().await;
    plane.webhook.answer(Answer::Status(500, ""));

    let list = plane.api.get_as(V2, METADATA_LIST).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    let one = plane.api.get_as(&format!("{V2}/a"), METADATA).await.ok();
    assert_eq!(one["metadata"]["name"], "a");
    plane.api.get(V2).await.refused(500, "InternalError");

    plane.api.delete(&format!("{V2}/a")).await.ok();
    plane.gone(&format!("{V2}/a")).await;
    let begun = plane.api.delete(&format!("{V2}/b")).await.ok();
    assert_eq!(begun["status"], "Success");
    let metadata = plane.api.get_as(&format!("{V2}/b"), METADATA).await.ok();
    assert!(metadata["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(plane.stored_version("b").await, "stable.example.com/v1");

    let patch = json!({ "metadata": { "finalizers": null } });
    let path = format!("{V1}/b");
    plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    plane.gone(&path).await;
    plane.api.delete(DEFINITION).await.ok();
    plane.gone(DEFINITION).await;
    assert_eq!(plane.store.get(&format!("{FOLDER}/c")).await.unwrap(), None);
}
