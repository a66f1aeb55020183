//! The annotations of policies, webhooks and Pod security.

use serde_json::{Value, json};

use super::Audit;
use crate::http::admission::webhook::{Answer, Webhook};
use crate::http::api::{Api, CONFIGMAPS};
use crate::http::pod_security::{ENFORCE, LACKS, PODS, pod};
use crate::http::policies;

/// Returns the annotations of the create of a ConfigMap.
async fn annotations(audit: &Audit, api: &Api) -> Value {
    audit.forget().await;
    policies::create(api).await.ok();
    let event = Audit::only(&audit.events().await, "ResponseComplete");
    event["annotations"].clone()
}

#[tokio::test]
async fn policies_annotate_and_record_validations_that_do_not_hold() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let policy = policies::spec(json!({
        "validations": [
            { "expression": "true" },
            { "expression": "false", "message": "no more" },
        ],
        "auditAnnotations": [
            { "key": "name", "valueExpression": "'it is ' + object.metadata.name" },
            { "key": "none", "valueExpression": "null" },
        ],
    }));
    policies::bind(
        &api,
        policy,
        json!({ "validationActions": ["Audit", "Warn"] }),
    )
    .await;
    let found = annotations(&audit, &api).await;
    assert_eq!(found["p/name"], "it is a");
    assert_eq!(found["p/none"], Value::Null);
    let failure = found["validation.policy.admission.k8s.io/validation_failure"].as_str();
    let expected = r#"[{"message":"no more","policy":"p","binding":"b","expressionIndex":1,"validationActions":["Audit","Warn"]}]"#;
    assert_eq!(failure, Some(expected));
}

/// Creates a configuration `c` with the webhook `w.example.com` for ConfigMaps.
async fn configure(api: &Api, kind: &str, config: Value) {
    let configuration = json!({
        "metadata": { "name": "c" },
        "webhooks": [{
            "name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "clientConfig": config,
            "rules": [policies::rule(&["configmaps"])],
        }],
    });
    let path = format!("{}/{kind}", policies::GROUP);
    api.post(&path, configuration).await.ok();
    api.get(&format!("{path}/c")).await.ok();
}

#[tokio::test]
async fn webhooks_annotate_and_those_that_fail_are_named() {
    let audit = Audit::at("Request");
    let api = audit.api().await;
    let webhook = Webhook::start().await;
    configure(
        &api,
        "validatingwebhookconfigurations",
        webhook.by_url("validate"),
    )
    .await;
    configure(
        &api,
        "mutatingwebhookconfigurations",
        webhook.by_url("mutate"),
    )
    .await;
    webhook.answer(
        "validate",
        Answer::Fields(|_| json!({ "auditAnnotations": { "seen": "yes" } })),
    );
    webhook.answer(
        "mutate",
        Answer::Patch(|_| json!([{ "op": "add", "path": "/data/b", "value": "c" }])),
    );
    let found = annotations(&audit, &api).await;
    assert_eq!(found["w.example.com/seen"], "yes");
    assert_eq!(
        found["mutation.webhook.admission.k8s.io/round_0_index_0"],
        r#"{"configuration":"c","webhook":"w.example.com","mutated":true}"#
    );
    let patch = found["patch.webhook.admission.k8s.io/round_0_index_0"]
        .as_str()
        .unwrap();
    let patch: Value = serde_json::from_str(patch).unwrap();
    assert_eq!(patch["patch"][0]["path"], "/data/b");
    webhook.answer("validate", Answer::Status(500, "it broke"));
    webhook.answer("mutate", Answer::Status(500, "it broke"));
    api.delete(&format!("{CONFIGMAPS}/a")).await.ok();
    let found = annotations(&audit, &api).await;
    for key in ["validating", "mutation"] {
        let key = format!("failed-open.{key}.webhook.admission.k8s.io/round_0_index_0");
        assert_eq!(found[&key], "w.example.com", "{found:#}");
    }
}

#[tokio::test]
async fn pod_security_annotates_what_it_enforces_and_what_violates_a_level() {
    let audit = Audit::at("Metadata");
    let api = audit.api().await;
    let labels = json!({ (ENFORCE): "baseline", "pod-security.kubernetes.io/audit": "restricted" });
    api.label(labels).await.ok();
    audit.forget().await;
    api.post(PODS, pod("p")).await.ok();
    let event = Audit::only(&audit.events().await, "ResponseComplete");
    let annotation =
        |name: &str| event["annotations"][format!("pod-security.kubernetes.io/{name}")].clone();
    assert_eq!(annotation("enforce-policy"), "baseline:latest");
    let violation = format!("would violate PodSecurity \"restricted:latest\": {LACKS}");
    assert_eq!(annotation("audit-violations"), violation);
    assert_eq!(annotation("error"), Value::Null);
}
