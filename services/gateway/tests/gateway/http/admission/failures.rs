//! Webhooks that cannot be asked.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Answer, FAILED, Plane, denial};
use crate::http::api::{CONFIGMAPS, configmap};

#[tokio::test]
async fn the_failure_policy_decides_what_follows_from_a_failed_call() {
    let error = "failed to call webhook: an error on the server (\"it broke\") has prevented the request from succeeding";
    let broken = Answer::Status(500, "it broke");
    for (policy, expected) in [("Fail", Some(format!("{FAILED}{error}"))), ("Ignore", None)] {
        let fields = json!({ "failurePolicy": policy });
        for plane in [
            Plane::validating(broken, fields.clone()).await,
            Plane::mutating(broken, fields.clone()).await,
        ] {
            assert_eq!(denial(&plane.create().await), expected);
            assert_eq!(plane.server.paths(), ["a"]);
        }
    }
}

/// Checks V6.
#[tokio::test]
async fn a_redirect_of_a_webhook_is_not_followed() {
    let plane = Plane::validating(Answer::Allow, json!({})).await;
    plane.server.answer("other", Answer::Allow);
    for code in [301, 302, 303, 307, 308] {
        plane.server.answer("a", Answer::Moved(code, "/other"));
        let refused = plane.create().await.refused(500, "InternalError");
        let error = format!(
            "failed to call webhook: the server responded with the status code {code} but did not return more \
            information"
        );
        assert_eq!(refused, format!("{FAILED}{error}"));
        assert_eq!(plane.server.paths(), ["a"]);
    }
}

/// Checks V6: the log, which others than the client read, has nothing of what a webhook answers.
#[tokio::test]
async fn the_response_of_a_webhook_is_not_logged() {
    let log = Log::default();
    let written = log.clone();
    let writer = move || written.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter("info,setpoint_gateway=trace")
        .with_writer(writer)
        .finish();
    let _subscriber = tracing::subscriber::set_default(subscriber);
    let review: fn(&Value) -> Value = |review| {
        let uid = &review["request"]["uid"];
        json!({ "kind": "AdmissionReview", "apiVersion": "hunter2", "response": { "uid": uid, "allowed": true } })
    };
    for answer in [
        Answer::Status(500, "hunter2"),
        Answer::Status(200, "hunter2"),
        Answer::Status(200, "{\"hunter2\":"),
        Answer::Review(review),
    ] {
        for policy in ["Ignore", "Fail"] {
            let fields = json!({ "failurePolicy": policy });
            Plane::validating(answer, fields.clone())
                .await
                .create()
                .await;
            Plane::mutating(answer, fields).await.create().await;
        }
    }
    let log = log.text();
    assert!(log.contains("a webhook failed, which is ignored"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_denial_is_never_ignored() {
    let fields = json!({ "failurePolicy": "Ignore" });
    let denied = Answer::Deny(|| json!({ "message": "no" }));
    let plane = Plane::mutating(denied, fields).await;
    let told = denial(&plane.create().await).unwrap();
    assert_eq!(
        told,
        "admission webhook \"a.example.com\" denied the request: no"
    );
}

#[tokio::test]
async fn a_webhook_that_does_not_exist_fails_the_request() {
    let service = json!({ "service": { "namespace": "default", "name": "gone", "path": "/a" } });
    let plane = Plane::validating(Answer::Allow, json!({ "clientConfig": service })).await;
    let told = plane.create().await.refused(500, "InternalError");
    let error = "failed to call webhook: Post \"https://gone.default.svc:443/a?timeout=10s\": service \"gone\" not found";
    assert_eq!(told, format!("{FAILED}{error}"));
}

#[tokio::test]
async fn the_timeout_is_sent_and_obeyed() {
    let fields = json!({ "timeoutSeconds": 1 });
    let plane = Plane::mutating(Answer::Allow, fields).await;
    plane.create().await.ok();
    assert_eq!(plane.server.calls()[0].query, "timeout=1s");
    plane.server.answer("a", Answer::Nothing);
    let reply = plane.api.post(CONFIGMAPS, configmap("b")).await;
    let told = reply.refused(500, "InternalError");
    assert!(
        told.starts_with(&format!("{FAILED}failed to call webhook: Post ")),
        "{told}"
    );
    assert!(
        told.ends_with("?timeout=1s\": context deadline exceeded"),
        "{told}"
    );
}

#[tokio::test]
async fn a_dry_run_is_told_to_webhooks() {
    let plane = Plane::mutating(Answer::Allow, json!({ "sideEffects": "NoneOnDryRun" })).await;
    let path = format!("{CONFIGMAPS}?dryRun=All");
    plane.api.post(&path, configmap("a")).await.ok();
    let request = plane.server.request();
    assert_eq!(request["dryRun"], true);
    assert_eq!(request["options"]["dryRun"], json!(["All"]));
    plane.create().await.ok();
    assert_eq!(plane.server.request()["dryRun"], false);
}

#[tokio::test]
async fn patches_that_cannot_be_applied_fail_the_request_whatever_the_policy() {
    let patches: [fn(&Value) -> Value; 2] = [
        |_| json!([{ "op": "remove", "path": "/nothing" }]),
        |_| json!([{ "op": "add", "path": "/data", "value": 7 }]),
    ];
    for patch in patches {
        let fields = json!({ "failurePolicy": "Ignore" });
        let plane = Plane::mutating(Answer::Patch(patch), fields).await;
        let told = plane.create().await.refused(500, "InternalError");
        assert!(told.starts_with("Internal error occurred: "), "{told}");
    }
}
