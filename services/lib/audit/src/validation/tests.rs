//! Policies that are refused, with the path of the wrong field.

use super::*;

fn refused(rules: &str) -> String {
    let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}");
    Policy::read(text.as_bytes()).unwrap_err().to_string()
}

/// The cases of upstream's `TestValidatePolicy`.
#[test]
fn wrong_fields_are_named() {
    for (policy, error) in [
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: All}]",
            r#"rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse""#,
        ),
        (
            "rules: [{level: None}, {level: None, nonResourceURLs: [metrics]}]",
            r#"rules[1].nonResourceURLs[0]: Invalid value: "metrics": non-resource URL rules must begin with a '/' character"#,
        ),
        (
            r#"rules: [{level: None, nonResourceURLs: ["/a*b"]}]"#,
            r#"rules[0].nonResourceURLs[0]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule"#,
        ),
        (
            "rules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]",
            r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs"#,
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            r#"rules[0].resources[0].resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource"#,
        ),
        (
            "rules: [{level: None, omitStages: [Never]}]",
            r#"rules[0].omitStages[0]: Invalid value: "Never": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
        ),
        (
            "omitStages: [Never]\nrules: [{level: None}]",
            r#"omitStages[0]: Invalid value: "Never": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
        ),
        ("rules: []", "loaded illegal policy with 0 rules"),
        ("", "loaded illegal policy with 0 rules"),
    ] {
        assert_eq!(refused(policy), error, "{policy}");
    }
    let group = refused("rules: [{level: None, resources: [{group: rbac/v1}]}]");
    let start = r#"rules[0].resources[0].group: Invalid value: "rbac/v1": a lowercase RFC 1123"#;
    assert!(group.starts_with(start), "{group}");
    let two = refused("rules: [{}, {level: Some}]");
    let start = "[rules[0].level: Required value, rules[1].level: Unsupported value";
    assert!(two.starts_with(start), "{two}");
}

#[test]
fn fields_that_are_not_known_or_of_another_type_are_refused() {
    for (policy, error) in [
        (
            "rules: [{level: None, verb: [get]}]",
            r#"strict decoding error: unknown field "rules[0].verb""#,
        ),
        (
            "rules: [{level: None, resources: [{groups: a}]}]",
            r#"strict decoding error: unknown field "rules[0].resources[0].groups""#,
        ),
        (
            "rules: [{level: None, verbs: get}]",
            r#"failed decoding: rules[0].verbs: Invalid value: "get": must be a list"#,
        ),
        (
            "rules: [{level: None, omitManagedFields: 1}]",
            "failed decoding: rules[0].omitManagedFields: Invalid value: 1: must be a boolean",
        ),
    ] {
        assert_eq!(refused(policy), error, "{policy}");
    }
}

#[test]
fn only_policies_of_the_known_version_are_read() {
    let read = |text: &str| Policy::read(text.as_bytes()).map_err(|error| error.to_string());
    let error = read("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]");
    let expected = r#"apiVersion: Unsupported value: "audit.k8s.io/v1beta1": supported values: "audit.k8s.io/v1""#;
    assert_eq!(error, Err(expected.into()));
    let error = read("rules: [{level: None}]").unwrap_err();
    assert_eq!(error, "[apiVersion: Required value, kind: Required value]");
    assert!(read("a: b: c").is_err());
    assert!(read("[]").is_err());
    assert!(read("\u{0}").is_err());
    let json = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"None"}]}"#;
    assert!(read(json).is_ok());
}

#[test]
fn the_file_of_a_wrong_policy_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("policy.yaml");
    let missing = Policy::read_file(&path).unwrap_err().to_string();
    assert!(missing.starts_with("failed to read file path"), "{missing}");
    std::fs::write(&path, "apiVersion: audit.k8s.io/v1\nkind: Policy\n").unwrap();
    let empty = Policy::read_file(&path).unwrap_err().to_string();
    let expected = format!(
        "loaded illegal policy with 0 rules: from file {}",
        path.display()
    );
    assert_eq!(empty, expected);
}
