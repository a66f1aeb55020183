//! What follows from the responses of webhooks.

use serde_json::{Value, json};

use super::{Answer, FAILED, Plane, denial, warnings};

/// Returns the plane with the webhook, which validates or mutates.
async fn plane(mutates: bool, answer: Answer, fields: Value) -> Plane {
    match mutates {
        true => Plane::mutating(answer, fields).await,
        false => Plane::validating(answer, fields).await,
    }
}

#[tokio::test]
async fn a_denial_has_the_status_of_the_response() {
    type Status = fn() -> Value;
    let denied = "admission webhook \"a.example.com\" denied the request";
    let cases: [(Status, u16, Value, &str); 6] = [
        (|| Value::Null, 400, Value::Null, " without explanation"),
        (|| json!({ "message": "no" }), 400, Value::Null, ": no"),
        (
            || json!({ "reason": "Forbidden" }),
            400,
            "Forbidden".into(),
            ": Forbidden",
        ),
        (
            || json!({ "code": 403, "reason": "Forbidden", "message": "you shall not pass" }),
            403,
            "Forbidden".into(),
            ": you shall not pass",
        ),
        (
            || json!({ "code": 418, "message": "tea" }),
            418,
            Value::Null,
            ": tea",
        ),
        (
            || json!({ "code": 200, "status": "Success", "reason": "Mine" }),
            400,
            "Mine".into(),
            ": Mine",
        ),
    ];
    for (status, code, reason, message) in cases {
        for mutates in [false, true] {
            let plane = plane(mutates, Answer::Deny(status), json!({})).await;
            let reply = plane.create().await;
            let body = reply.json();
            assert_eq!((reply.code.as_u16(), &body["code"]), (code, &json!(code)));
            assert_eq!(body["reason"], reason);
            assert_eq!(body["status"], "Failure");
            assert_eq!(body["message"], format!("{denied}{message}"));
            let path = format!("{}/a", crate::http::api::CONFIGMAPS);
            assert_eq!(plane.api.get(&path).await.code, 404);
        }
    }
}

#[tokio::test]
async fn the_details_of_a_denial_are_kept() {
    let status = || json!({ "code": 422, "details": { "causes": [{ "field": "data.a" }] } });
    let plane = plane(false, Answer::Deny(status), json!({})).await;
    let body = plane.create().await.json();
    assert_eq!(body["details"]["causes"][0]["field"], "data.a");
}

#[tokio::test]
async fn warnings_are_sent_to_the_client() {
    let fields = |_: &Value| json!({ "warnings": ["one", "two", "one", ""] });
    for mutates in [false, true] {
        let plane = plane(mutates, Answer::Fields(fields), json!({})).await;
        let created = plane.create().await;
        created.ok();
        assert_eq!(warnings(&created), ["one", "two"]);
        let path = format!("{}/a", crate::http::api::CONFIGMAPS);
        let patch = json!({ "data": { "a": "c" } });
        let patched = plane.api.patch(&path, "merge-patch+json", patch).await;
        assert_eq!(warnings(&patched), ["one", "two"]);
        assert_eq!(warnings(&plane.api.delete(&path).await), ["one", "two"]);
    }
    let denied = |_: &Value| json!({ "allowed": false, "warnings": ["why"] });
    let plane = plane(false, Answer::Fields(denied), json!({})).await;
    let reply = plane.create().await;
    assert_eq!(
        (reply.code.as_u16(), warnings(&reply)),
        (400, vec!["why".into()])
    );
}

#[tokio::test]
async fn malformed_responses_are_failures() {
    let invalid = "received invalid webhook response: ";
    let cases: [(Answer, String); 5] = [
        (
            Answer::Review(|_| json!({})),
            format!("{invalid}webhook response was absent"),
        ),
        (
            Answer::Review(|review| json!({ "response": { "uid": review["request"]["uid"] } })),
            format!(
                "{invalid}expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
            ),
        ),
        (
            Answer::Fields(|_| json!({ "patchType": "JSONPatch" })),
            format!("{invalid}webhook returned response.patchType but not response.patch"),
        ),
        (
            Answer::Fields(|_| json!({ "patch": "W3t9XQ==", "patchType": "Other" })),
            "unsupported patch type \"Other\"".into(),
        ),
        (
            Answer::Status(200, "hello"),
            "failed to call webhook: ".into(),
        ),
    ];
    for (answer, error) in cases {
        let plane = plane(true, answer, json!({})).await;
        let told = plane.create().await.refused(500, "InternalError");
        assert!(told.starts_with(&format!("{FAILED}{error}")), "{told}");
    }
    let patched = Answer::Fields(|_| json!({ "patch": "W10=", "patchType": "JSONPatch" }));
    let plane = plane(false, patched, json!({})).await;
    let told = plane.create().await.refused(500, "InternalError");
    assert_eq!(
        told,
        format!("{FAILED}{invalid}validating webhook may not return response.patch")
    );
}

#[tokio::test]
async fn the_older_version_of_reviews_is_spoken_if_it_is_the_first_known() {
    let versions = json!({ "admissionReviewVersions": ["v7", "v1beta1", "v1"] });
    let answer = Answer::Review(|review| {
        assert_eq!(review["apiVersion"], "admission.k8s.io/v1beta1");
        assert_eq!(review["kind"], "AdmissionReview");
        json!({ "response": { "allowed": false } })
    });
    let plane = plane(true, answer, versions).await;
    let told = denial(&plane.create().await).unwrap();
    assert!(
        told.ends_with("denied the request without explanation"),
        "{told}"
    );
}

#[tokio::test]
async fn the_first_denial_of_several_webhooks_is_told() {
    let plane = Plane::start().await;
    let webhooks = [
        plane.webhook("a", Answer::Allow, json!({})),
        plane.webhook("b", Answer::Deny(|| json!({ "message": "b" })), json!({})),
        plane.webhook("c", Answer::Deny(|| json!({ "message": "c" })), json!({})),
    ];
    plane
        .configure("validatingwebhookconfigurations", "v", &webhooks)
        .await;
    let told = denial(&plane.create().await).unwrap();
    assert_eq!(
        told,
        "admission webhook \"b.example.com\" denied the request: b"
    );
    let mut paths = plane.server.paths();
    paths.sort();
    assert_eq!(paths, ["a", "b", "c"]);
}
