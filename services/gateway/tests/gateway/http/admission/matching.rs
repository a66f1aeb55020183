//! The requests that webhooks are called for.

use serde_json::{Value, json};

use super::{Answer, Plane, denial, merged, rule};
use crate::http::api::{CONFIGMAPS, DEPLOYMENTS, configmap, deployment};

/// Returns a rule for ConfigMaps with some fields.
fn configmaps(fields: Value) -> Value {
    merged(rule(&["configmaps"]), fields)
}

#[tokio::test]
async fn rules_and_selectors_select_requests() {
    let labels = |value: &str| json!({ "matchLabels": { "name": value } });
    let of_namespace =
        |name: &str| json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let rules = |fields: Value| json!({ "rules": [configmaps(fields)] });
    for (fields, is_called) in [
        (json!({}), true),
        (json!({ "rules": [] }), false),
        (rules(json!({ "operations": ["CREATE"] })), true),
        (rules(json!({ "operations": ["UPDATE", "DELETE"] })), false),
        (
            rules(json!({ "apiGroups": [""], "apiVersions": ["v1"] })),
            true,
        ),
        (rules(json!({ "apiGroups": ["apps"] })), false),
        (rules(json!({ "apiVersions": ["v2"] })), false),
        (rules(json!({ "resources": ["*"] })), true),
        (rules(json!({ "resources": ["*/*"] })), true),
        (rules(json!({ "resources": ["configmaps/*"] })), true),
        (rules(json!({ "resources": ["*/status"] })), false),
        (rules(json!({ "resources": ["pods", "secrets"] })), false),
        (rules(json!({ "scope": "Namespaced" })), true),
        (rules(json!({ "scope": "Cluster" })), false),
        (json!({ "objectSelector": labels("a") }), true),
        (json!({ "objectSelector": labels("b") }), false),
        (
            json!({ "namespaceSelector": of_namespace("default") }),
            true,
        ),
        (json!({ "namespaceSelector": of_namespace("other") }), false),
        (
            json!({ "rules": [configmaps(json!({ "apiVersions": ["v2"] })), rule(&["*"])] }),
            true,
        ),
    ] {
        for plane in [
            Plane::validating(Answer::Allow, fields.clone()).await,
            Plane::mutating(Answer::Allow, fields.clone()).await,
        ] {
            plane.create().await.ok();
            let called = !plane.server.calls().is_empty();
            assert_eq!(called, is_called, "{fields}");
        }
    }
}

#[tokio::test]
async fn match_conditions_decide_which_requests_are_sent() {
    let conditions = |expressions: &[&str]| {
        let all = expressions.iter().enumerate();
        let all = all.map(|(at, one)| json!({ "name": format!("c{at}"), "expression": one }));
        json!(all.collect::<Vec<_>>())
    };
    let forbidden = r#"configmaps "a" is forbidden: "#;
    let absent = "object.metadata.annotations['x'] == 'y'";
    for (expressions, policy, is_called, error) in [
        (&["true", "object.data.a == 'b'"][..], "Fail", true, None),
        (&["request.operation == 'DELETE'"], "Fail", false, None),
        (&["true", "oldObject != null"], "Fail", false, None),
        (
            &["authorizer.group('').resource('pods').check('get').allowed()"],
            "Fail",
            true,
            None,
        ),
        (&[absent], "Fail", false, Some(forbidden)),
        (&[absent], "Ignore", false, None),
        (&[absent, "false"], "Fail", false, None),
    ] {
        let fields = json!({
            "matchConditions": conditions(expressions), "failurePolicy": policy,
        });
        let plane = Plane::mutating(Answer::Allow, fields).await;
        let told = denial(&plane.create().await);
        assert_eq!(
            !plane.server.calls().is_empty(),
            is_called,
            "{expressions:?}"
        );
        match error {
            None => assert_eq!(told, None),
            Some(error) => assert!(told.as_ref().unwrap().starts_with(error), "{told:?}"),
        }
    }
}

#[tokio::test]
async fn match_conditions_that_do_not_compile_are_refused() {
    let plane = Plane::start().await;
    for (expression, error) in [
        (
            "object.",
            "webhooks[0].matchConditions[0].expression: Invalid value: \"object.\"",
        ),
        ("1 + 1", "must evaluate to bool"),
        ("params.x == 1", "undeclared reference to 'params'"),
        ("variables.x == 1", "variables"),
    ] {
        let condition = json!([{ "name": "c", "expression": expression }]);
        let webhook = plane.webhook("a", Answer::Allow, json!({ "matchConditions": condition }));
        for plural in [
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ] {
            let path = format!("{}/{plural}", super::GROUP);
            let body = json!({ "metadata": { "name": "c" }, "webhooks": [webhook] });
            let told = plane.api.post(&path, body).await.refused(422, "Invalid");
            assert!(told.contains(error), "{told}");
        }
    }
}

/// Configurations could otherwise lock their own administrators out.
#[tokio::test]
async fn configurations_and_policies_are_exempt() {
    let everything = json!({ "rules": [rule(&["*/*"])] });
    let denied = Answer::Deny(|| json!({ "message": "no" }));
    let plane = Plane::validating(denied, everything.clone()).await;
    assert!(!plane.create().await.code.is_success());
    plane.server.calls();
    let webhook = plane.webhook("b", denied, everything);
    plane.mutate(&[webhook]).await;
    for configuration in [
        "mutatingwebhookconfigurations/mutating",
        "validatingwebhookconfigurations/validating",
    ] {
        let path = format!("{}/{configuration}", super::GROUP);
        plane.api.delete(&path).await.ok();
    }
    assert!(plane.server.calls().is_empty());
}

#[tokio::test]
async fn a_rule_for_another_version_matches_if_the_policy_is_equivalent() {
    let autoscalers = |version: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers")
    };
    let autoscaler = json!({
        "metadata": { "name": "a" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 2,
            "maxReplicas": 5,
            "targetCPUUtilizationPercentage": 60,
        },
    });
    let rules = json!([{
        "operations": ["CREATE"],
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"],
    }]);
    let exact = json!({ "rules": rules, "matchPolicy": "Exact" });
    let plane = Plane::mutating(Answer::Allow, exact).await;
    plane
        .api
        .post(&autoscalers("v1"), autoscaler.clone())
        .await
        .ok();
    assert!(plane.server.calls().is_empty());
    let answer = Answer::Patch(|request| {
        assert_eq!(request["object"]["apiVersion"], "autoscaling/v2");
        assert_eq!(
            request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            60
        );
        let path = "/spec/metrics/0/resource/target/averageUtilization";
        json!([{ "op": "replace", "path": path, "value": 70 }])
    });
    let plane = Plane::mutating(answer, json!({ "rules": rules })).await;
    let created = plane.api.post(&autoscalers("v1"), autoscaler).await.ok();
    assert_eq!(created["apiVersion"], "autoscaling/v1");
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 70);
    let request = plane.server.request();
    assert_eq!(request["kind"]["version"], "v2");
    assert_eq!(request["resource"]["version"], "v2");
    assert_eq!(request["requestKind"]["version"], "v1");
    assert_eq!(request["requestResource"]["version"], "v1");
}

#[tokio::test]
async fn without_webhooks_that_match_nothing_is_called() {
    let plane = Plane::mutating(Answer::Allow, json!({})).await;
    plane.api.post(DEPLOYMENTS, deployment("web")).await.ok();
    assert!(plane.server.calls().is_empty());
    plane.api.post(CONFIGMAPS, configmap("b")).await.ok();
    assert_eq!(plane.server.paths(), ["a"]);
}
