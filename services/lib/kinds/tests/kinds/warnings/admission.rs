//! Configurations of webhooks, policies and their bindings.

use serde_json::{Value, json};

use crate::table::Base;

const RESERVED: &str = r#"metadata.name: names ending with ".static.k8s.io" are reserved for static manifest-based configurations and cannot be managed via the API"#;

fn specs() -> [(&'static str, Value); 6] {
    let rules = json!({"resourceRules": [{
        "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
    }]});
    [
        ("validatingwebhookconfigurations", Value::Null),
        ("mutatingwebhookconfigurations", Value::Null),
        (
            "validatingadmissionpolicies",
            json!({"matchConstraints": rules, "validations": [{"expression": "true"}]}),
        ),
        (
            "mutatingadmissionpolicies",
            json!({"matchConstraints": rules, "reinvocationPolicy": "Never", "mutations": [{
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": "Object{}"},
            }]}),
        ),
        (
            "validatingadmissionpolicybindings",
            json!({"policyName": "a", "validationActions": ["Deny"]}),
        ),
        (
            "mutatingadmissionpolicybindings",
            json!({"policyName": "a"}),
        ),
    ]
}

#[test]
fn reserved_names() {
    for (plural, spec) in specs() {
        let resource = format!("{plural}.admissionregistration.k8s.io").leak();
        let mut base = Base {
            resource,
            object: json!({"metadata": {"name": "a"}}),
        };
        if !spec.is_null() {
            base.object["spec"] = spec;
        }
        base.warned(&[
            ("", &[]),
            (r#"metadata.name="a.static.k8s.io""#, &[RESERVED]),
        ]);
        base.object["metadata"]["name"] = "a.static.k8s.io".into();
        base.warned_of_update(&[("", r#"metadata.labels={"a":"b"}"#, &[RESERVED])]);
    }
}
