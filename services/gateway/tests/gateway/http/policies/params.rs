//! Parameters of policies.

use serde_json::{Value, json};

use super::{create, denial, spec, with};
use crate::http::api::{Api, CONFIGMAPS};

const NOT_FOUND: &str = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";

/// Starts a gateway with parameters, and a policy that says the limits that it is given.
async fn limited(kind: &str, reference: Value) -> Api {
    let api = Api::start().await;
    for (name, limit) in [("one", "1"), ("two", "2")] {
        let labels = json!({ "limits": "yes", "name": name });
        let config = json!({
            "metadata": { "name": name, "labels": labels }, "data": { "limit": limit },
        });
        api.post(CONFIGMAPS, config).await.ok();
    }
    let (version, kind) = kind.split_once(' ').unwrap();
    let policy = spec(json!({
        "paramKind": { "apiVersion": version, "kind": kind },
        "validations": [{
            "expression": "false",
            "messageExpression": "params == null ? 'none' : params.kind + ' ' + string(params.data.limit)",
        }],
    }));
    let binding = match reference {
        Value::Null => json!({}),
        reference => json!({ "paramRef": reference }),
    };
    super::bind(&api, policy, binding).await;
    api
}

#[tokio::test]
async fn parameters_are_found_by_name_or_by_selector() {
    let config = "v1 ConfigMap";
    let labels = |name| json!({ "matchLabels": { "limits": "yes", "name": name } });
    for (kind, reference, expected) in [
        (config, json!({ "name": "two" }), Some("ConfigMap 2")),
        (
            config,
            json!({ "name": "two", "namespace": "default" }),
            Some("ConfigMap 2"),
        ),
        (
            config,
            json!({ "name": "two", "namespace": "other" }),
            Some(NOT_FOUND),
        ),
        (config, json!({ "name": "three" }), Some(NOT_FOUND)),
        (
            config,
            json!({ "name": "three", "parameterNotFoundAction": "Allow" }),
            None,
        ),
        (
            config,
            json!({ "selector": labels("two") }),
            Some("ConfigMap 2"),
        ),
        // Each is evaluated; the first denial counts.
        (
            config,
            json!({ "selector": { "matchLabels": { "limits": "yes" } } }),
            Some("ConfigMap 1"),
        ),
        (config, json!({ "selector": labels("x") }), Some(NOT_FOUND)),
        (
            config,
            json!({ "selector": labels("x"), "parameterNotFoundAction": "Allow" }),
            None,
        ),
        (config, Value::Null, Some("none")),
        (
            "v1 Node",
            json!({ "name": "n", "namespace": "default" }),
            Some(
                "failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`",
            ),
        ),
    ] {
        let reference = match reference {
            Value::Null => reference,
            given => super::merged(json!({ "parameterNotFoundAction": "Deny" }), given),
        };
        let api = limited(kind, reference.clone()).await;
        assert_eq!(
            denial(&create(&api).await).as_deref(),
            expected,
            "{reference}"
        );
    }
}

#[tokio::test]
async fn a_kind_of_parameters_must_be_served() {
    let reference = json!({ "name": "a", "parameterNotFoundAction": "Deny" });
    let api = limited("example.com/v1 Limit", reference).await;
    let reply = create(&api).await;
    assert_eq!(
        denial(&reply).as_deref(),
        Some(
            "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'"
        )
    );
}

#[tokio::test]
async fn parameters_in_namespaces_need_the_namespace_of_the_request() {
    let policy = spec(json!({
        "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
        "matchConstraints": { "resourceRules": [super::rule(&["namespaces"])] },
    }));
    let reference = json!({ "name": "a", "parameterNotFoundAction": "Allow" });
    let api = with(policy, json!({ "paramRef": reference })).await;
    let namespace = json!({ "metadata": { "name": "new" } });
    let reply = api.post("/api/v1/namespaces", namespace).await;
    assert_eq!(
        denial(&reply).as_deref(),
        Some(
            "failed to configure binding: cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    );
}
