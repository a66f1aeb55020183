use serde_json::json;

use super::*;

fn read(authorizers: &str) -> Result<Configuration, String> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
{authorizers}"
    );
    Configuration::read(text.as_bytes())
}

fn webhook_of(change: &str) -> Result<Webhook, String> {
    let text = format!(
        "- type: Webhook
  name: policy
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: /none}}
{change}"
    );
    let mut found = read(&text)?;
    match found.authorizers.remove(0).kind {
        Kind::Webhook(webhook) => Ok(*webhook),
        other => panic!("{other:?} is no webhook"),
    }
}

#[test]
fn authorizers_are_asked_in_their_order() {
    let found = read("- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n").unwrap();
    let names: Vec<_> = found
        .authorizers
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(names, ["node", "rbac"]);
    assert!(matches!(found.authorizers[1].kind, Kind::Rbac));
}

#[test]
fn a_webhook_has_upstreams_defaults() {
    let found = webhook_of("").unwrap();
    assert_eq!(found.authorized_ttl, AUTHORIZED_TTL);
    assert_eq!(found.unauthorized_ttl, UNAUTHORIZED_TTL);
    assert_eq!(found.timeout, Duration::from_secs(3));
    assert_eq!(found.version, Version::V1);
    assert!(!found.denies_on_failure);
    let changed =
        webhook_of("    authorizedTTL: 1m30s\n    cacheUnauthorizedRequests: false\n").unwrap();
    assert_eq!(changed.authorized_ttl, Duration::from_secs(90));
    assert_eq!(changed.unauthorized_ttl, Duration::ZERO);
}

#[test]
fn what_is_wrong_is_told_in_upstreams_words() {
    for (authorizers, expected) in [
        (
            " []",
            "authorizers: Required value: at least one authorization mode must be defined",
        ),
        ("- {name: a}", "authorizers[0].type: Required value"),
        (
            "- {type: ABAC, name: a}",
            "authorizers[0].type: Unsupported value: \"ABAC\": supported values: \"AlwaysAllow\", \"AlwaysDeny\", \
             \"Node\", \"RBAC\", \"Webhook\"",
        ),
        (
            "- {type: RBAC, name: a}\n- {type: RBAC, name: b}",
            "authorizers[1].type: Duplicate value: \"RBAC\"",
        ),
        ("- {type: RBAC}", "authorizers[0].name: Required value"),
        (
            "- {type: RBAC, name: a}\n- {type: Node, name: a}",
            "authorizers[1].name: Duplicate value: \"a\"",
        ),
        (
            "- {type: Webhook, name: a}",
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            "- {type: RBAC, name: a, webhook: {}}",
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
        ),
    ] {
        assert_eq!(read(authorizers).map(drop).unwrap_err(), expected);
    }
    for (change, expected) in [
        (
            "    authorizedTTL: 5\n",
            "authorizers[0].webhook.authorizedTTL: Invalid value: invalid type: integer `5`, expected a string",
        ),
        (
            "    authorizedTTL: soon\n",
            "authorizers[0].authorizedTTL: Invalid value: \"soon\": time: invalid duration \"soon\"",
        ),
        (
            "    unauthorizedTTL: -1s\n",
            "authorizers[0].unauthorizedTTL: Invalid value: \"-1s\": must be > 0s",
        ),
        (
            "    matchConditions: [{expression: request.none}]\n",
            "undefined field 'none'",
        ),
        (
            "    matchConditions: [{expression: request.user}]\n",
            "authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool but \
             got string",
        ),
        (
            "    matchConditions: [{expression: ' '}]\n",
            "authorizers[0].matchConditions[0].expression: Required value",
        ),
    ] {
        let error = webhook_of(change).map(drop).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let wrong = "- {type: Webhook, name: a, webhook: {timeout: 31s, connectionInfo: {type: InClusterConfig}}}";
    assert_eq!(
        read(wrong).map(drop).unwrap_err(),
        "[authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s, \
         authorizers[0].subjectAccessReviewVersion: Required value, authorizers[0].failurePolicy: Required value, \
         authorizers[0].connectionInfo.type: Forbidden: InClusterConfig is not supported: the API server is no Pod]"
    );
}

#[test]
fn conditions_are_about_the_review() {
    let found = webhook_of(
        "    matchConditions:
    - {expression: has(request.resourceAttributes)}
    - {expression: request.resourceAttributes.namespace == 'shop'}
    - {expression: \"!('system:nodes' in request.groups)\"}
",
    );
    let conditions = found.unwrap().conditions;
    let of = |namespace: &str, group: &str| {
        let spec = json!({
            "user": "jane", "uid": "", "groups": [group], "extra": {},
            "resourceAttributes": {"namespace": namespace, "verb": "get"},
        });
        conditions.hold(&spec)
    };
    assert_eq!(of("shop", "dev"), Ok(true));
    assert_eq!(of("other", "dev"), Ok(false));
    assert_eq!(of("shop", "system:nodes"), Ok(false));
    let other = json!({
        "user": "jane", "uid": "", "groups": [], "extra": {}, "nonResourceAttributes": {"path": "/", "verb": "get"},
    });
    assert_eq!(conditions.hold(&other), Ok(false));
}

#[test]
fn a_condition_that_fails_counts_only_if_all_others_hold() {
    let conditions = |second: &str| {
        let text = format!(
            "    matchConditions: [{{expression: \"request.extra['a'][0] == 'b'\"}}, {{expression: \"{second}\"}}]\n"
        );
        let found = webhook_of(&text).unwrap().conditions;
        found.hold(&json!({"user": "jane", "uid": "", "groups": [], "extra": {}}))
    };
    assert_eq!(conditions("request.user == 'joe'"), Ok(false));
    let failed = conditions("request.user == 'jane'").unwrap_err();
    assert!(
        failed.starts_with("cel evaluation error: expression 'request.extra"),
        "{failed}"
    );
}
