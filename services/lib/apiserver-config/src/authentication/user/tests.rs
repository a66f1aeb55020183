use serde_json::json;

use super::super::Configuration;
use super::*;

/// Returns the configuration with the rest of the entry of one issuer.
fn read(rest: &str) -> Result<Configuration, String> {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {{url: 'https://issuer.example.com', audiences: [setpoint]}}
{rest}"
    );
    Configuration::read(text.as_bytes(), &["https://own"])
}

fn user(rest: &str, claims: Value) -> Result<Identity, String> {
    let Value::Object(claims) = claims else {
        panic!("claims are an object");
    };
    read(rest).unwrap().authenticators[0].user(claims)
}

const BY_CLAIM: &str = "
  claimMappings:
    username: {claim: sub, prefix: 'corp:'}
    groups: {claim: roles, prefix: 'corp:'}
    uid: {claim: id}
";

#[test]
fn claims_become_a_user_with_prefixes() {
    let found = user(
        BY_CLAIM,
        json!({"sub": "jane", "roles": ["dev", "ops"], "id": "7", "jti": "x"}),
    );
    let found = found.unwrap();
    assert_eq!(
        (found.name.as_str(), found.uid.as_str()),
        ("corp:jane", "7")
    );
    assert_eq!(found.groups, ["corp:dev", "corp:ops"]);
    assert_eq!(found.extra[CREDENTIAL], ["JTI=x"]);
    let single = user(BY_CLAIM, json!({"sub": "jane", "roles": "dev", "id": "7"}));
    assert_eq!(single.unwrap().groups, ["corp:dev"]);
    let without = user(BY_CLAIM, json!({"sub": "jane", "id": "7"}));
    assert!(without.unwrap().groups.is_empty());
}

#[test]
fn claims_that_are_missing_or_of_another_type_are_told() {
    for (claims, expected) in [
        (
            json!({"id": "7"}),
            "oidc: parse username claims \"sub\": claim not present",
        ),
        (
            json!({"sub": 7, "id": "7"}),
            "oidc: parse username claims \"sub\": it is no string",
        ),
        (
            json!({"sub": "jane", "id": "7", "roles": [7]}),
            "oidc: parse groups claim \"roles\": it is no string",
        ),
        (
            json!({"sub": "jane", "id": "7", "_claim_names": {"roles": "a"}}),
            "oidc: could not expand distributed claims: distributed claims are not supported",
        ),
    ] {
        assert_eq!(user(BY_CLAIM, claims).unwrap_err(), expected);
    }
}

#[test]
fn a_name_by_mail_has_to_be_verified_if_the_issuer_says_whether_it_is() {
    let rest = "  claimMappings: {username: {claim: email, prefix: ''}}\n";
    let name = |claims| user(rest, claims).map(|user| user.name);
    assert_eq!(name(json!({"email": "a@b"})).as_deref(), Ok("a@b"));
    let verified = name(json!({"email": "a@b", "email_verified": true}));
    assert_eq!(verified.as_deref(), Ok("a@b"));
    let unverified = name(json!({"email": "a@b", "email_verified": false}));
    assert_eq!(unverified.unwrap_err(), "oidc: email not verified");
    assert!(name(json!({"email": "a@b", "email_verified": "true"})).is_err());
}

const BY_EXPRESSION: &str = "
  claimMappings:
    username: {expression: \"claims.sub + '@corp'\"}
    groups: {expression: \"claims.roles.split(',')\"}
    uid: {expression: claims.id}
    extra:
    - {key: example.com/team, valueExpression: claims.team}
    - {key: example.com/none, valueExpression: \"''\"}
  claimValidationRules:
  - {claim: tenant, requiredValue: red}
  - {expression: 'claims.exp - claims.nbf <= 86400', message: lives for longer than a day}
  userValidationRules:
  - {expression: \"!user.username.startsWith('system:')\", message: the name is reserved}
  - {expression: \"user.groups.all(group, !group.startsWith('system:'))\", message: a group is reserved}
";

fn expressed(change: &[(&str, Value)]) -> Result<Identity, String> {
    let mut claims = json!({
        "sub": "jane", "roles": "dev,ops", "id": "7", "team": ["a", ""], "tenant": "red", "nbf": 100, "exp": 200,
    });
    for (name, value) in change {
        claims[*name] = value.clone();
    }
    user(BY_EXPRESSION, claims)
}

#[test]
fn expressions_map_and_validate_claims_and_users() {
    let found = expressed(&[]).unwrap();
    assert_eq!(
        (found.name.as_str(), found.uid.as_str()),
        ("jane@corp", "7")
    );
    assert_eq!(found.groups, ["dev", "ops"]);
    let extra = BTreeMap::from([("example.com/team".to_owned(), vec!["a".to_owned()])]);
    assert_eq!(found.extra, extra);
    for (change, expected) in [
        (
            ("tenant", json!("blue")),
            "oidc: required claim tenant value does not match. Got = blue, want = red",
        ),
        (
            ("exp", json!(100_000)),
            "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.nbf <= \
             86400' failed: lives for longer than a day",
        ),
        (
            ("sub", json!("system:admin")),
            "oidc: error evaluating user info validation rule: validation expression \
             '!user.username.startsWith('system:')' failed: the name is reserved",
        ),
        (
            ("roles", json!("system:masters")),
            "oidc: error evaluating user info validation rule: validation expression \
             'user.groups.all(group, !group.startsWith('system:'))' failed: a group is reserved",
        ),
        (
            ("team", json!(7)),
            "oidc: error evaluating extra claim expression: claims.team: expression must return a string or a list of \
             strings",
        ),
        (
            ("id", json!(7)),
            "oidc: error evaluating uid claim expression: uid claim expression must return a string",
        ),
    ] {
        assert_eq!(expressed(&[change]).unwrap_err(), expected);
    }
    let missing = user(BY_EXPRESSION, json!({"roles": ""})).unwrap_err();
    let start = "oidc: error evaluating username claim expression: expression 'claims.sub + '@corp'' resulted in error";
    assert!(missing.starts_with(start), "{missing}");
}

#[test]
fn what_is_wrong_with_a_file_is_told_in_upstreams_words() {
    for (rest, expected) in [
        (
            "",
            "jwt[0].claimMappings.username: Required value: claim or expression is required",
        ),
        (
            "  claimMappings: {username: {claim: sub}}\n",
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set \
             to an empty string to disable prefixing",
        ),
        (
            "  claimMappings: {username: {expression: claims.email}}\n",
            EMAIL_UNVERIFIED,
        ),
        (
            "  claimMappings: {username: {claim: sub, prefix: ''}, extra: [{key: k8s.io/a, valueExpression: claims.a}]}\n",
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"k8s.io/a\": k8s.io, kubernetes.io and their subdomains \
             are reserved for Kubernetes use",
        ),
        (
            "  claimMappings: {username: {claim: sub, prefix: ''}}\n  claimValidationRules: [{expression: claims.sub}]\n",
            "jwt[0].claimValidationRules[0].expression: Invalid value: \"claims.sub\": must evaluate to bool",
        ),
        (
            "  claimMappings: {username: {claim: sub, prefix: ''}}\n  userValidationRules: [{message: why}]\n",
            "jwt[0].userValidationRules[0].expression: Required value",
        ),
        (
            "  claimMappings: {username: {claim: sub, prefix: ''}, other: 1}\n",
            "strict decoding error: unknown field \"jwt[0].claimMappings.other\"",
        ),
    ] {
        assert_eq!(read(rest).map(drop).unwrap_err(), expected);
    }
}

const EMAIL_UNVERIFIED: &str = "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": \
    claims.email_verified must be used in claimMappings.username.expression or \
    claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
    claimMappings.username.expression";

#[test]
fn a_name_by_mail_in_an_expression_needs_a_look_at_whether_it_is_verified() {
    for expression in [
        "claims.email_verified == true ? claims.email : claims.sub",
        "claims.?email_verified.orValue(true) ? claims.email : claims.sub",
    ] {
        let rest = format!("  claimMappings: {{username: {{expression: '{expression}'}}}}\n");
        assert!(read(&rest).is_ok(), "{expression}");
    }
}

#[test]
fn what_is_wrong_with_an_issuer_is_told_in_upstreams_words() {
    let read = |issuer: &str, rest: &str| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {{{issuer}}}
  claimMappings: {{username: {{claim: sub, prefix: ''}}}}
{rest}"
        );
        Configuration::read(text.as_bytes(), &["https://own"]).map(drop)
    };
    assert_eq!(read("url: 'https://a', audiences: [b]", ""), Ok(()));
    for (issuer, expected) in [
        ("audiences: [b]", "jwt[0].issuer.url: Required value"),
        (
            "url: 'http://a', audiences: [b]",
            "jwt[0].issuer.url: Invalid value: \"http://a\": URL scheme must be https",
        ),
        (
            "url: 'https://own', audiences: [b]",
            "jwt[0].issuer.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: \
             [https://own]",
        ),
        (
            "url: 'https://u:p@a', audiences: [b]",
            "jwt[0].issuer.url: Invalid value: \"https://u:p@a\": URL must not contain a username or password",
        ),
        (
            "url: 'https://a', discoveryURL: 'https://a/', audiences: [b]",
            "jwt[0].issuer.discoveryURL: Invalid value: \"https://a/\": discoveryURL must be different from URL",
        ),
        (
            "url: 'https://a'",
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            "url: 'https://a', audiences: [b, c]",
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple \
             audiences",
        ),
        (
            "url: 'https://a', audiences: [b], certificateAuthority: none",
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or \
             ECDSA certificates",
        ),
        (
            "url: 'https://a', audiences: [b], egressSelectorType: cluster",
            "jwt[0].issuer.egressSelectorType: Forbidden: egress selection is not supported",
        ),
    ] {
        assert_eq!(read(issuer, "").unwrap_err(), expected);
    }
    let anonymous = "anonymous: {enabled: false, conditions: [{path: /livez}]}\n";
    assert_eq!(
        read("url: 'https://a', audiences: [b]", anonymous).unwrap_err(),
        "anonymous.conditions: Invalid value: [\"/livez\"]: enabled should be set to true when conditions are defined"
    );
    let twice = "- issuer: {url: 'https://a', audiences: [b]}\n  claimMappings: {username: {claim: a, prefix: ''}}\n";
    assert_eq!(
        read("url: 'https://a', audiences: [b]", twice).unwrap_err(),
        "jwt[1].issuer.url: Duplicate value: \"https://a\""
    );
}
