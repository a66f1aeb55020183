//! MutatingAdmissionPolicies: the cases of upstream's tests of their plugin and of its conformance tests, over HTTP.

use http::header::WARNING;
use serde_json::{Value, json};

use super::admission::{Plane, webhook::Answer};
use super::api::{Api, CONFIGMAPS, DEPLOYMENTS, Reply, configmap, deployment};
use super::policies::{GROUP, create, merged, rule};

/// The beginning of the errors of the policy `p` with the binding `b`.
const DENIED: &str = "policy 'p' with binding 'b' denied request: ";

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

/// Returns the spec of a policy for creates and updates of a resource, with some fields.
fn spec(resource: &str, mutations: &[Value], fields: Value) -> Value {
    let mut rule = rule(&[resource]);
    rule["operations"] = json!(["CREATE", "UPDATE"]);
    merged(
        json!({
            "matchConstraints": { "resourceRules": [rule] },
            "mutations": mutations,
            "reinvocationPolicy": "Never",
        }),
        fields,
    )
}

/// Creates a policy and its binding, and waits until the gateway knows them.
async fn bind(api: &Api, (policy, binding): (&str, &str), spec: Value, bound: Value) {
    let body = json!({ "metadata": { "name": policy }, "spec": spec });
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    let created = api.post(&path, body).await;
    created.ok();
    assert!(!created.headers.contains_key(WARNING), "{created:?}");
    let bound = merged(json!({ "policyName": policy }), bound);
    let body = json!({ "metadata": { "name": binding }, "spec": bound });
    let path = format!("{GROUP}/mutatingadmissionpolicybindings");
    let created = api.post(&path, body).await;
    created.ok();
    assert!(!created.headers.contains_key(WARNING), "{created:?}");
    // A read waits for the cache.
    api.get(&format!("{path}/{binding}")).await.ok();
}

/// A gateway with the policy `p` and its binding `b`.
async fn with(spec: Value) -> Api {
    let api = Api::start().await;
    bind(&api, ("p", "b"), spec, json!({})).await;
    api
}

/// Returns a gateway with a policy for ConfigMaps.
async fn configmaps(mutations: &[Value], fields: Value) -> Api {
    with(spec("configmaps", mutations, fields)).await
}

/// Returns the message of an error, with the code and the reason that upstream gives it.
#[track_caller]
fn denial(reply: &Reply) -> String {
    let message = reply.refused(403, "Invalid");
    let message = message.strip_prefix(DENIED).unwrap_or(&message);
    message.to_owned()
}

/// The conformance tests of mutations.
#[tokio::test]
async fn a_deployment_is_changed_by_an_applied_configuration() {
    let api = with(spec(
        "deployments",
        &[
            apply(r#"Object{metadata: Object.metadata{annotations: {"mutated-by": "admission-policy"}}}"#),
            apply("Object{spec: Object.spec{replicas: object.spec.replicas * 2}}"),
        ],
        json!({}),
    ))
    .await;
    let created = api.post(DEPLOYMENTS, deployment("a")).await.ok();
    assert_eq!(
        created["metadata"]["annotations"]["mutated-by"],
        "admission-policy"
    );
    assert_eq!(created["spec"]["replicas"], 6);
    let patch = json!({ "spec": { "replicas": 1 } });
    let path = format!("{DEPLOYMENTS}/a");
    let patched = api.patch(&path, "merge-patch+json", patch).await.ok();
    assert_eq!(patched["spec"]["replicas"], 2);
    assert_eq!(patched["spec"]["template"], created["spec"]["template"]);
    api.delete(&path).await.ok();
}

#[tokio::test]
async fn lists_are_merged_by_key_and_defaults_are_set_again() {
    let container = "Object.spec.template.spec.containers";
    let sidecar = format!(
        r#"Object{{spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{
            containers: [{container}{{name: "web", env: [{container}.env{{name: "A", value: "b"}}]}},
                {container}{{name: "sidecar", image: "s:1", ?workingDir: optional.none()}}]}}}}}}}}"#
    );
    let api = with(spec("deployments", &[apply(&sidecar)], json!({}))).await;
    let created = api.post(DEPLOYMENTS, deployment("a")).await.ok();
    let containers = &created["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "nginx:1.25");
    assert_eq!(containers[0]["env"], json!([{ "name": "A", "value": "b" }]));
    assert_eq!(containers[1]["name"], "sidecar");
    assert_eq!(containers[1]["imagePullPolicy"], "IfNotPresent");
}

#[tokio::test]
async fn a_json_patch_is_applied_unless_its_test_fails() {
    let api = configmaps(
        &[
            patch(r#"[JSONPatch{op: "test", path: "/data/a", value: "x"}, JSONPatch{op: "remove", path: "/data/a"}]"#),
            patch(
                r#"[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("k8s.io/x"), value: "true"},
                    JSONPatch{op: "move", from: "/data/a", path: "/data/b"},
                    JSONPatch{op: "replace", path: "/metadata/annotations", value: {"y": "2"}}]"#,
            ),
        ],
        json!({}),
    )
    .await;
    let created = create(&api).await.ok();
    assert_eq!(created["data"], json!({ "b": "b" }));
    assert_eq!(created["metadata"]["labels"]["k8s.io/x"], "true");
    assert_eq!(created["metadata"]["annotations"], json!({ "y": "2" }));
}

#[tokio::test]
async fn what_fails_denies_the_request_unless_failures_are_ignored() {
    let name = "string(variables.missing)";
    for (mutation, message) in [
        (
            apply("Object{data: Object.datum{a: 'x'}}"),
            "type mismatch: unexpected type name \"Object.datum\", expected \"Object.data\", which matches field name path from root Object type",
        ),
        (
            apply("Object{datum: {'a': 'x'}}"),
            "error applying patch: failed to convert patch object to typed object: .datum: field not declared in schema",
        ),
        (
            apply(
                "Object{metadata: Object.metadata{ownerReferences: [Object.metadata.ownerReferences{uid: 'u', name: 'n'}]}}",
            ),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .metadata.ownerReferences[0]",
        ),
        (
            apply("Object{data: {'a': object.none}}"),
            "expression 'Object{data: {'a': object.none}}' resulted in error: no such key: none",
        ),
        (
            patch(r#"[JSONPatch{op: "remove", path: "/none"}]"#),
            "JSON Patch: error in remove for path: '/none': Unable to remove nonexistent key: none: missing value",
        ),
        (
            patch(&format!(
                r#"[JSONPatch{{op: "add", path: "/data/b", value: {name}}}]"#
            )),
            "composited variable \"missing\" fails to evaluate: no such key: missing",
        ),
    ] {
        let variables = json!([{ "name": "missing", "expression": "object.missing" }]);
        let fields = json!({ "variables": variables });
        let api = configmaps(std::slice::from_ref(&mutation), fields.clone()).await;
        let found = denial(&create(&api).await);
        assert!(found.ends_with(message), "{found}\n{message}");
        let fields = merged(fields, json!({ "failurePolicy": "Ignore" }));
        let api = configmaps(&[mutation, apply("Object{data: {'b': 'c'}}")], fields).await;
        assert_eq!(
            create(&api).await.ok()["data"],
            json!({ "a": "b", "b": "c" })
        );
    }
}

#[tokio::test]
async fn the_error_has_all_failures_as_causes() {
    let broken = apply("Object{data: {'a': object.none}}");
    let api = configmaps(std::slice::from_ref(&broken), json!({})).await;
    let binding = ("q", "c");
    bind(
        &api,
        binding,
        spec("configmaps", &[broken], json!({})),
        json!({}),
    )
    .await;
    let reply = create(&api).await;
    let message = reply.refused(403, "Invalid");
    assert!(message.starts_with(DENIED), "{message}");
    let causes = reply.json()["details"]["causes"].clone();
    assert_eq!(causes.as_array().unwrap().len(), 2, "{causes}");
    let second = causes[1]["message"].as_str().unwrap();
    assert!(
        second.starts_with("policy 'q' with binding 'c'"),
        "{second}"
    );
}

/// Upstream's plugin answers with an error of its own, whatever the failure policy is.
#[tokio::test]
async fn a_json_patch_cannot_add_unknown_fields() {
    let unknown = patch(r#"[JSONPatch{op: "add", path: "/odd", value: 1}]"#);
    let api = configmaps(&[unknown], json!({ "failurePolicy": "Ignore" })).await;
    assert_eq!(
        create(&api).await.refused(500, "InternalError"),
        "Internal error occurred: strict decoding error: unknown field \"odd\""
    );
}

#[tokio::test]
async fn an_expression_that_costs_too_much_fails() {
    let list = "[1,1,1,1,1,1,1,1,1,1]";
    let mut inner = "'x'".to_owned();
    for name in ["a", "b", "c", "d", "e", "f"] {
        inner = format!("{list}.map({name}, {inner})");
    }
    let costly = patch(&format!(
        r#"[JSONPatch{{op: "add", path: "/data/b", value: {inner}}}]"#
    ));
    let api = configmaps(&[costly], json!({})).await;
    let found = denial(&create(&api).await);
    assert!(found.contains("cost"), "{found}");
}

#[tokio::test]
async fn match_conditions_variables_and_parameters_are_evaluated() {
    let api = Api::start().await;
    for (name, value) in [("one", "1"), ("two", "2")] {
        let config = json!({
            "metadata": { "name": name, "labels": { "limits": "yes" } }, "data": { "limit": value },
        });
        api.post(CONFIGMAPS, config).await.ok();
    }
    let fields = json!({
        "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
        "matchConditions": [{ "name": "wanted", "expression": "object.metadata.name != 'unwanted' && params.data.limit != '0'" }],
        "variables": [{ "name": "text", "expression": "params.data.limit + namespaceObject.metadata.name" }],
    });
    let mutation = patch(
        r#"[JSONPatch{op: "add", path: "/data/" + params.metadata.name, value: variables.text + string(size(object.data))}]"#,
    );
    let reference = json!({ "paramRef": {
        "selector": { "matchLabels": { "limits": "yes" } }, "parameterNotFoundAction": "Deny",
    } });
    bind(
        &api,
        ("p", "b"),
        spec("configmaps", &[mutation], fields),
        reference,
    )
    .await;
    let created = api.post(CONFIGMAPS, configmap("a")).await.ok();
    assert_eq!(
        created["data"],
        json!({ "a": "b", "one": "1default1", "two": "2default2" })
    );
    let created = api.post(CONFIGMAPS, configmap("unwanted")).await.ok();
    assert_eq!(created["data"], json!({ "a": "b" }));
}

#[tokio::test]
async fn a_binding_without_its_parameters_denies_the_request() {
    let api = Api::start().await;
    let fields = json!({ "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" } });
    let reference = json!({ "paramRef": { "name": "none", "parameterNotFoundAction": "Deny" } });
    let mutation = apply("Object{}");
    bind(
        &api,
        ("p", "b"),
        spec("configmaps", &[mutation], fields),
        reference,
    )
    .await;
    assert_eq!(
        create(&api).await.refused(403, "Forbidden"),
        format!(
            "{DENIED}failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
        )
    );
}

#[tokio::test]
async fn policies_come_before_webhooks_and_both_before_validation() {
    let plane = Plane::start().await;
    let webhook = plane.webhook(
        "a",
        Answer::Patch(|request| {
            let seen = request["object"]["data"]["a"].as_str().unwrap();
            json!([{ "op": "replace", "path": "/data/a", "value": format!("{seen}w") }])
        }),
        json!({}),
    );
    plane.mutate(&[webhook]).await;
    let add = |text: &str| {
        apply(&format!(
            "Object{{data: {{'a': object.data.a + '{text}'}}}}"
        ))
    };
    let of = |text: &str| spec("configmaps", &[add(text)], json!({}));
    bind(&plane.api, ("q", "c"), of("q"), json!({})).await;
    bind(&plane.api, ("p", "b"), of("p"), json!({})).await;
    assert_eq!(plane.create().await.ok()["data"]["a"], "bpqw");
}

/// As upstream, a policy that may be evaluated again is, even if no other has changed the object.
#[tokio::test]
async fn policies_are_evaluated_again_after_others_have_changed_the_object() {
    let count =
        patch(r#"[JSONPatch{op: "add", path: "/data/p" + string(size(object.data)), value: "x"}]"#);
    let again = json!({ "reinvocationPolicy": "IfNeeded" });
    let api = configmaps(std::slice::from_ref(&count), again).await;
    let once = spec(
        "configmaps",
        &[apply("Object{data: {'q': 'y'}}")],
        json!({}),
    );
    bind(&api, ("q", "c"), once, json!({})).await;
    let created = create(&api).await.ok();
    assert_eq!(
        created["data"],
        json!({ "a": "b", "p1": "x", "q": "y", "p3": "x" })
    );
    let api = configmaps(&[count], json!({})).await;
    let created = create(&api).await.ok();
    assert_eq!(created["data"], json!({ "a": "b", "p1": "x" }));
}

#[tokio::test]
async fn a_policy_sees_what_a_webhook_has_changed_after_it() {
    let plane = Plane::start().await;
    let webhook = plane.webhook(
        "a",
        Answer::Patch(|_| json!([{ "op": "add", "path": "/data/w", "value": "x" }])),
        json!({}),
    );
    plane.mutate(&[webhook]).await;
    let mutation = apply("Object{data: {'seen': string(has(object.data.w))}}");
    let again = json!({ "reinvocationPolicy": "IfNeeded" });
    bind(
        &plane.api,
        ("p", "b"),
        spec("configmaps", &[mutation], again),
        json!({}),
    )
    .await;
    assert_eq!(plane.create().await.ok()["data"]["seen"], "true");
}

#[tokio::test]
async fn expressions_that_do_not_compile_are_refused() {
    let api = Api::start().await;
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    for (mutation, field, error) in [
        (
            apply("'teapot'"),
            "spec.mutations[0].applyConfiguration.expression",
            "must evaluate to Object but got string",
        ),
        (
            patch("[]"),
            "spec.mutations[0].jsonPatch.expression",
            "must evaluate to list(JSONPatch) but got list(dyn)",
        ),
        (
            patch("[JSONPatch{op: 1}]"),
            "spec.mutations[0].jsonPatch.expression",
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (
            apply("Object{a: variables.b}"),
            "spec.mutations[0].applyConfiguration.expression",
            "undefined field 'b'",
        ),
        (
            apply(" "),
            "spec.mutations[0].applyConfiguration.expression",
            "Required value",
        ),
    ] {
        let spec = spec("configmaps", &[mutation], json!({}));
        let body = json!({ "metadata": { "name": "p" }, "spec": spec });
        let message = api.post(&path, body).await.refused(422, "Invalid");
        assert!(
            message.contains(field) && message.contains(error),
            "{message}"
        );
    }
    let conditions = json!({
        "matchConditions": [{ "name": "c", "expression": "1" }],
        "variables": [{ "name": "v", "expression": "Object{}" }],
    });
    let spec = spec("configmaps", &[apply("Object{}")], conditions);
    let body = json!({ "metadata": { "name": "p" }, "spec": spec });
    let message = api.post(&path, body).await.refused(422, "Invalid");
    for field in [
        "spec.matchConditions[0].expression",
        "spec.variables[0].expression",
    ] {
        assert!(message.contains(field), "{message}");
    }
}
