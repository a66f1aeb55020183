//! Expressions: what they see, and what follows from their values and errors.

use http::header::WARNING;
use serde_json::{Value, json};

use super::{DENIED, create, denial, spec, with};
use crate::http::api::{Api, CONFIGMAPS};

#[tokio::test]
async fn a_validation_that_does_not_hold_has_a_message_and_a_reason() {
    let long = format!("'{}'", "x".repeat(6_000));
    for (validation, code, reason, message) in [
        (
            json!({}),
            422,
            "Invalid",
            "failed expression: object.data.a == 'x'",
        ),
        (json!({ "message": " no " }), 422, "Invalid", "no"),
        (
            json!({ "message": "no", "reason": "Forbidden" }),
            403,
            "Forbidden",
            "no",
        ),
        (
            json!({ "message": "no", "reason": "RequestEntityTooLarge" }),
            413,
            "RequestEntityTooLarge",
            "no",
        ),
        (
            json!({ "message": "no", "messageExpression": "'got ' + object.data.a" }),
            422,
            "Invalid",
            "got b",
        ),
        // Fallbacks: the expression fails, its value is empty, has lines, or is too long.
        (
            json!({ "message": "no", "messageExpression": "'' + object.none" }),
            422,
            "Invalid",
            "no",
        ),
        (
            json!({ "message": "no", "messageExpression": "' '" }),
            422,
            "Invalid",
            "no",
        ),
        (
            json!({ "message": "no", "messageExpression": r"'a\nb'" }),
            422,
            "Invalid",
            "no",
        ),
        (
            json!({ "message": "no", "messageExpression": long }),
            422,
            "Invalid",
            "no",
        ),
    ] {
        let expression = json!({ "expression": "object.data.a == 'x'" });
        let validation = super::merged(expression, validation);
        let api = with(spec(json!({ "validations": [validation] })), json!({})).await;
        let reply = create(&api).await;
        let expected = format!("configmaps \"a\" is forbidden: {DENIED}{message}");
        assert_eq!(reply.refused(code, reason), expected);
        let details = &reply.json()["details"];
        assert_eq!(details["kind"], "configmaps");
        assert_eq!(
            details["causes"][0]["message"],
            format!("{DENIED}{message}")
        );
        assert_eq!(api.get(&format!("{CONFIGMAPS}/a")).await.code, 404);
    }
}

/// Creates a ConfigMap under a policy. Returns why it is denied.
async fn denied(fields: Value) -> Option<String> {
    let api = with(spec(fields), json!({})).await;
    denial(&create(&api).await)
}

fn one(expression: &str) -> Value {
    json!([{ "expression": expression, "message": "no" }])
}

#[tokio::test]
async fn expressions_see_the_objects_the_request_and_the_namespace() {
    for expression in [
        "object.metadata.name == 'a' && object.kind == 'ConfigMap' && object.apiVersion == 'v1'",
        "object.metadata.labels == {'name': 'a'}",
        "oldObject == null",
        "namespaceObject.metadata.name == 'default'",
        "namespaceObject.metadata.name == object.metadata.namespace",
        "request.operation == 'CREATE' && request.name == 'a' && request.namespace == 'default'",
        "request.resource.version == 'v1' && request.resource.resource == 'configmaps'",
        "request.kind.kind == 'ConfigMap' && request.subResource == ''",
        "request.userInfo.username == 'system:admin'",
        "'system:masters' in request.userInfo.groups",
        "authorizer.requestResource.check('delete').allowed()",
        "request.options.kind == 'CreateOptions' && !request.dryRun",
    ] {
        let held = denied(json!({ "validations": one(expression) })).await;
        assert_eq!(held, None, "{expression}");
        let negated = denied(json!({ "validations": one(&format!("!({expression})")) })).await;
        assert_eq!(negated.as_deref(), Some("no"), "{expression}");
    }
}

#[tokio::test]
async fn variables_are_shared_and_computed_from_those_before_them() {
    let variables = json!([
        { "name": "value", "expression": "object.data.a" },
        { "name": "long", "expression": "size(variables.value) > 5" },
        { "name": "broken", "expression": "object.none" },
    ]);
    for (expression, expected) in [
        ("!variables.long", None),
        ("variables.long", Some("no")),
        ("!variables.long || variables.broken == 1", None),
        (
            "variables.broken == 1",
            Some(
                "expression 'variables.broken == 1' resulted in error: composited variable \"broken\" fails to evaluate: no such key: none",
            ),
        ),
    ] {
        let fields = json!({ "variables": variables, "validations": one(expression) });
        assert_eq!(denied(fields).await.as_deref(), expected, "{expression}");
    }
}

#[tokio::test]
async fn the_failure_policy_decides_about_errors() {
    let error = "expression 'object.none == 1' resulted in error: no such key: none";
    for (policy, expected) in [("Fail", Some(error)), ("Ignore", None)] {
        let fields = json!({ "failurePolicy": policy, "validations": one("object.none == 1") });
        assert_eq!(denied(fields).await.as_deref(), expected, "{policy}");
    }
    // A validation that does not hold is no failure.
    let fields = json!({ "failurePolicy": "Ignore", "validations": one("false") });
    assert_eq!(denied(fields).await.as_deref(), Some("no"));
}

#[tokio::test]
async fn match_conditions_must_all_hold() {
    let error = "expression 'object.none == 1' resulted in error: no such key: none";
    let both = format!("[{error}, {error}]");
    for (conditions, policy, expected) in [
        (vec!["true"], "Fail", Some("no")),
        (vec!["true", "false"], "Fail", None),
        // One that is false decides, whichever failed before.
        (vec!["object.none == 1", "false"], "Fail", None),
        (vec!["true", "object.none == 1"], "Fail", Some(error)),
        (
            vec!["object.none == 1", "object.none == 1"],
            "Fail",
            Some(&*both),
        ),
        (vec!["true", "object.none == 1"], "Ignore", None),
        (vec!["request.operation == 'CREATE'"], "Fail", Some("no")),
    ] {
        let named = conditions.iter().enumerate();
        let named = named.map(
            |(index, expression)| json!({ "name": format!("c{index}"), "expression": expression }),
        );
        let fields = json!({
            "matchConditions": named.collect::<Vec<_>>(),
            "failurePolicy": policy,
            "validations": one("false"),
        });
        assert_eq!(
            denied(fields).await.as_deref(),
            expected,
            "{conditions:?} {policy}"
        );
    }
}

#[tokio::test]
async fn annotations_that_fail_deny_the_request() {
    let annotation = |expression| json!([{ "key": "a", "valueExpression": expression }]);
    let valid = json!({ "validations": [], "auditAnnotations": annotation("'x'") });
    assert_eq!(denied(valid).await, None);
    let failing = json!({ "validations": [], "auditAnnotations": annotation("'' + object.none") });
    let error = denied(failing).await.unwrap();
    assert!(error.ends_with("no such key: none"), "{error}");
}

#[tokio::test]
async fn actions_are_to_deny_to_warn_or_to_audit() {
    let warning = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': no";
    for (actions, code, warned) in [
        (json!(["Deny"]), 422, false),
        (json!(["Warn"]), 201, true),
        (json!(["Audit"]), 201, false),
        (json!(["Warn", "Audit"]), 201, true),
        (json!(["Deny", "Audit"]), 422, false),
    ] {
        let policy = spec(json!({ "validations": one("false") }));
        let api = with(policy, json!({ "validationActions": actions })).await;
        let reply = create(&api).await;
        assert_eq!(reply.code, code, "{actions}");
        let mut headers = reply.headers.get_all(WARNING).iter();
        let found = headers.any(|header| header.to_str().unwrap().contains(warning));
        assert_eq!(found, warned, "{actions}");
    }
}

/// Checks F1.
#[tokio::test]
async fn the_cost_of_a_policy_is_bounded() {
    let data: serde_json::Map<String, Value> = (0..2_000)
        .map(|index| (format!("k{index}"), "v".into()))
        .collect();
    let nested = "object.data.all(a, object.data.all(b, a + b != ''))";
    let api = with(spec(json!({ "validations": one(nested) })), json!({})).await;
    let config = json!({ "metadata": { "name": "a" }, "data": data });
    let error = denial(&api.post(CONFIGMAPS, config).await).unwrap();
    assert!(
        error.ends_with("operation cancelled: actual cost limit exceeded"),
        "{error}"
    );
}

#[tokio::test]
async fn expressions_that_do_not_compile_are_invalid() {
    let api = Api::start().await;
    for (fields, field, detail) in [
        (
            json!({ "validations": one("object.") }),
            "spec.validations[0].expression",
            "compilation failed: ERROR: <input>:1:",
        ),
        (
            json!({ "validations": one("object.a") }),
            "spec.validations[0].expression",
            "must evaluate to bool but got dyn",
        ),
        (
            json!({ "validations": one("params.x == 1") }),
            "spec.validations[0].expression",
            "undeclared reference to 'params'",
        ),
        (
            json!({ "validations": [{ "expression": "true", "messageExpression": "1" }] }),
            "spec.validations[0].messageExpression",
            "must evaluate to string but got int",
        ),
        (
            json!({ "variables": [{ "name": "a", "expression": "variables.b" }] }),
            "spec.variables[0].expression",
            "undefined field 'b'",
        ),
        (
            json!({ "matchConditions": [{ "name": "a", "expression": "request.nope == 1" }] }),
            "spec.matchConditions[0].expression",
            "undefined field 'nope'",
        ),
        (
            json!({ "auditAnnotations": [{ "key": "a", "valueExpression": "1" }] }),
            "spec.auditAnnotations[0].valueExpression",
            "must evaluate to one of [string null_type] but got int",
        ),
    ] {
        let policy = json!({ "metadata": { "name": "q" }, "spec": spec(fields) });
        let path = format!("{}/validatingadmissionpolicies", super::GROUP);
        let reply = api.post(&path, policy).await;
        reply.refused(422, "Invalid");
        let cause = &reply.json()["details"]["causes"][0];
        assert_eq!(cause["field"], field);
        let message = cause["message"].as_str().unwrap();
        assert!(message.contains(detail), "{message}");
    }
}
