//! The type check of policies, whose result is in their status.

use serde_json::{Value, json};

use super::{GROUP, spec};
use crate::http::api::Api;

/// Creates a policy for Deployments. Returns the warnings of its type check.
async fn checked(api: &Api, fields: Value) -> Vec<(String, String)> {
    let rule = json!({
        "operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
    });
    let rules = json!({ "matchConstraints": { "resourceRules": [rule] } });
    let policy = json!({
        "metadata": { "generateName": "p" }, "spec": spec(super::merged(rules, fields)),
    });
    let path = format!("{GROUP}/validatingadmissionpolicies");
    let created = api.post(&path, policy).await.ok();
    let path = format!("{path}/{}", created["metadata"]["name"].as_str().unwrap());
    let is_checked = |policy: &Value| policy["status"]["typeChecking"].is_object();
    let reply = api
        .eventually(&path, |reply| is_checked(&reply.json()))
        .await;
    let status = &reply.json()["status"];
    assert_eq!(status["observedGeneration"], 1);
    let warnings = status["typeChecking"]["expressionWarnings"].as_array();
    let text = |warning: &Value, field: &str| warning[field].as_str().unwrap().to_owned();
    let warnings = warnings.into_iter().flatten();
    warnings
        .map(|warning| (text(warning, "fieldRef"), text(warning, "warning")))
        .collect()
}

#[tokio::test]
async fn expressions_are_checked_against_the_types_that_the_rules_name() {
    let api = Api::start().await;
    let _background = api.run_background();
    let valid = json!({
        "variables": [{ "name": "replicas", "expression": "object.spec.replicas" }],
        "validations": [
            { "expression": "variables.replicas > 1" },
            { "expression": "object.metadata.namespace != '' && object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')" },
            { "expression": "object.spec.template.spec.containers.all(c, c.image.startsWith('x/'))" },
            { "expression": "object.spec.strategy.rollingUpdate.maxSurge == 1" },
        ],
    });
    assert_eq!(checked(&api, valid).await, []);
    let confused = json!({ "validations": [
        { "expression": "object.spec.replicas > '1'", "messageExpression": "'got ' + object.spec.replicas" },
        { "expression": "object.spec.maxRetries < 10" },
    ] });
    let warnings = checked(&api, confused).await;
    for ((field, warning), (expected, part)) in warnings.iter().zip([
        (
            "spec.validations[0].expression",
            "apps/v1, Kind=Deployment: compilation failed: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'",
        ),
        (
            "spec.validations[0].messageExpression",
            "found no matching overload for '_+_' applied to '(string, int)'",
        ),
        ("spec.validations[1].expression", "undefined field 'maxRetries'"),
    ]) {
        assert_eq!(field, expected);
        assert!(warning.contains(part), "{warning}");
    }
    assert_eq!(warnings.len(), 3);
}
