//! Webhook configurations and admission policies: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

fn rule() -> Value {
    json!({ "operations": ["CREATE"], "apiGroups": ["a"], "apiVersions": ["v1"], "resources": ["pods"] })
}

#[test]
fn webhooks() {
    let hook = json!({
        "name": "webhook.k8s.io", "clientConfig": { "url": "https://example.com" },
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule()],
    });
    let object = json!({ "metadata": { "name": "config" }, "webhooks": [hook] });
    let both: &[_] = &[
        ("", ""),
        ("webhooks=null", ""),
        (r#"webhooks[0].name="k8s.io""#, "Invalid webhooks[0].name"),
        ("webhooks[0].name=null", "Required webhooks[0].name"),
        (
            "webhooks[0].sideEffects=null",
            "Required webhooks[0].sideEffects",
        ),
        (
            r#"webhooks[0].sideEffects="Some""#,
            "NotSupported webhooks[0].sideEffects",
        ),
        (
            "webhooks[0].admissionReviewVersions=[]",
            "Required webhooks[0].admissionReviewVersions",
        ),
        (
            r#"webhooks[0].admissionReviewVersions=["0v"]"#,
            "Invalid webhooks[0].admissionReviewVersions, Invalid webhooks[0].admissionReviewVersions[0]",
        ),
        (
            r#"webhooks[0].admissionReviewVersions=["v1","v1"]"#,
            "Invalid webhooks[0].admissionReviewVersions[1]",
        ),
        (
            r#"webhooks[0].failurePolicy="other""#,
            "NotSupported webhooks[0].failurePolicy",
        ),
        (
            r#"webhooks[0].matchPolicy="other""#,
            "NotSupported webhooks[0].matchPolicy",
        ),
        (
            "webhooks[0].timeoutSeconds=31",
            "Invalid webhooks[0].timeoutSeconds",
        ),
        ("webhooks[0].timeoutSeconds=30", ""),
        (
            "webhooks[0].clientConfig={}",
            "Required webhooks[0].clientConfig",
        ),
        (
            r#"webhooks[0].clientConfig.service={"name":"a","namespace":"b"}"#,
            "Required webhooks[0].clientConfig",
        ),
        (
            r#"webhooks[0].clientConfig={"service":{"name":"a","namespace":"b","path":"a//b","port":65536}}"#,
            "Invalid webhooks[0].clientConfig.service.port, Invalid webhooks[0].clientConfig.service.path, Invalid webhooks[0].clientConfig.service.path",
        ),
        (
            r#"webhooks[0].clientConfig.url="http://a.b""#,
            "Invalid webhooks[0].clientConfig.url",
        ),
        (
            r#"webhooks[0].clientConfig.url="https://u@a.b/?q#f""#,
            "Invalid webhooks[0].clientConfig.url, Invalid webhooks[0].clientConfig.url, Invalid webhooks[0].clientConfig.url",
        ),
        (
            "webhooks[0].rules[0].operations=[]",
            "Required webhooks[0].rules[0].operations",
        ),
        (
            r#"webhooks[0].rules[0].operations=["*","CREATE"]"#,
            "Invalid webhooks[0].rules[0].operations",
        ),
        (
            r#"webhooks[0].rules[0].operations=["WATCH"]"#,
            "NotSupported webhooks[0].rules[0].operations[0]",
        ),
        (
            r#"webhooks[0].rules[0].apiGroups=["a","*"]"#,
            "Invalid webhooks[0].rules[0].apiGroups",
        ),
        (
            r#"webhooks[0].rules[0].apiVersions=[""]"#,
            "Required webhooks[0].rules[0].apiVersions[0]",
        ),
        (
            r#"webhooks[0].rules[0].resources=["*","a"]"#,
            "Invalid webhooks[0].rules[0].resources",
        ),
        (
            r#"webhooks[0].rules[0].resources=["*/*","a"]"#,
            "Invalid webhooks[0].rules[0].resources",
        ),
        (
            r#"webhooks[0].rules[0].resources=["a/*","a/x"]"#,
            "Invalid webhooks[0].rules[0].resources[1]",
        ),
        (
            r#"webhooks[0].rules[0].resources=["*/x","a/x"]"#,
            "Invalid webhooks[0].rules[0].resources[1]",
        ),
        (r#"webhooks[0].rules[0].resources=["a","a/*"]"#, ""),
        (
            r#"webhooks[0].rules[0].scope="Galaxy""#,
            "NotSupported webhooks[0].rules[0].scope",
        ),
        (
            r#"webhooks[0].matchConditions=[{"name":"a","expression":"true"},{"name":"a","expression":" "}]"#,
            "Required webhooks[0].matchConditions[1].expression, Duplicate webhooks[0].matchConditions[1].name",
        ),
    ];
    let group = |plural| base(plural, object.clone());
    let validating = group("validatingwebhookconfigurations.admissionregistration.k8s.io");
    validating.created(both);
    let mutating = group("mutatingwebhookconfigurations.admissionregistration.k8s.io");
    mutating.created(both);
    mutating.created(&[(
        r#"webhooks[0].reinvocationPolicy="other""#,
        "NotSupported webhooks[0].reinvocationPolicy",
    )]);
    mutating.updated(&[("", r#"webhooks[0].failurePolicy="Ignore""#, "")]);
}

#[test]
fn validating_policies() {
    let policy = base(
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        json!({ "metadata": { "name": "config" }, "spec": {
            "matchConstraints": { "resourceRules": [rule()] },
            "validations": [{ "expression": "object.x < 100" }],
        } }),
    );
    policy
        .created(&[
            ("", ""),
            (r#"spec.failurePolicy="other""#, "NotSupported spec.failurePolicy"),
            (r#"spec.paramKind={"apiVersion":"v1","kind":"ConfigMap"}"#, ""),
            (r#"spec.paramKind={"kind":"!"}"#, "Required spec.paramKind.apiVersion, Invalid spec.paramKind.kind"),
            (r#"spec.paramKind={"apiVersion":"a/b/c","kind":"K"}"#, "Invalid spec.paramKind.apiVersion"),
            ("spec.matchConstraints=null", "Required spec.matchConstraints"),
            ("spec.matchConstraints={}", "Required spec.matchConstraints.resourceRules"),
            (
                r#"spec.matchConstraints.resourceRules[0].resourceNames=["a","a","/"]"#,
                "Duplicate spec.matchConstraints.resourceRules[0].resourceNames[1], Invalid spec.matchConstraints.resourceRules[0].resourceNames[2]",
            ),
            ("spec.validations=null", "Required spec.validations, Required spec.auditAnnotations"),
            (r#"spec.validations[0].expression=" ""#, "Required spec.validations[0].expression"),
            (r#"spec.validations[0].message="a\nb""#, "Invalid spec.validations[0].message"),
            (r#"spec.validations[0].messageExpression=" ""#, "Invalid spec.validations[0].messageExpression"),
            (r#"spec.validations[0].reason="other""#, "NotSupported spec.validations[0].reason"),
            (r#"spec.variables=[{"name":"4ever","expression":"1"}]"#, "Invalid spec.variables[0].name"),
            (r#"spec.variables=[{"name":"in","expression":""}]"#, "Invalid spec.variables[0].name, Required spec.variables[0].expression"),
            (
                r#"spec.auditAnnotations=[{"key":"@","valueExpression":"'x'"},{"key":"a","valueExpression":" "}]"#,
                "Invalid spec.auditAnnotations[0].key, Required spec.auditAnnotations[1].valueExpression",
            ),
        ]);
    policy
        .reported(&[
            ("", r#"status.conditions=[{"type":"a","status":"True","reason":"R","lastTransitionTime":"2026-01-02T03:04:05Z"}]"#, ""),
            ("", r#"status.conditions=[{"type":"a","status":"x"}]"#, "NotSupported status.conditions[0].status, Required status.conditions[0].lastTransitionTime, Required status.conditions[0].reason"),
        ]);
}

#[test]
fn mutating_policies() {
    let policy = base(
        "mutatingadmissionpolicies.admissionregistration.k8s.io",
        json!({ "metadata": { "name": "config" }, "spec": {
            "matchConstraints": { "resourceRules": [rule()] },
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": "[JSONPatch{op: 'test', path: '/kind'}]" } }],
            "reinvocationPolicy": "Never",
        } }),
    );
    policy.created(&[
        ("", ""),
        ("spec.mutations=null", "Required spec.mutations"),
        (
            r#"spec.mutations[0].patchType="other""#,
            "NotSupported spec.mutations[0].patchType",
        ),
        (
            "spec.mutations[0].patchType=null",
            "Required spec.mutations[0].patchType",
        ),
        (
            "spec.mutations[0].jsonPatch=null",
            "Required spec.mutations[0].jsonPatch",
        ),
        (
            r#"spec.mutations[0].applyConfiguration={"expression":"x"}"#,
            "Invalid spec.mutations[0].applyConfiguration",
        ),
        (
            "spec.reinvocationPolicy=null",
            "Required spec.reinvocationPolicy",
        ),
        (
            r#"spec.matchConstraints.resourceRules[0].operations=["DELETE"]"#,
            "NotSupported spec.matchConstraints.resourceRules.operations",
        ),
    ]);
}

#[test]
fn bindings() {
    let object = json!({ "metadata": { "name": "config" }, "spec": {
        "policyName": "policy.example.com",
        "paramRef": { "name": "x", "parameterNotFoundAction": "Deny" },
        "validationActions": ["Deny"],
    } });
    let both: &[_] = &[
        ("", ""),
        ("spec.policyName=null", "Required spec.policyName"),
        (r#"spec.policyName="A""#, "Invalid spec.policyName"),
        ("spec.paramRef=null", ""),
        ("spec.paramRef.name=null", "Required spec.paramRef"),
        (r#"spec.paramRef.name="a/b""#, "Invalid spec.paramRef.name"),
        (
            "spec.paramRef.selector={}",
            "Forbidden spec.paramRef.name, Forbidden spec.paramRef.selector",
        ),
        (
            "spec.paramRef.parameterNotFoundAction=null",
            "Required spec.paramRef.parameterNotFoundAction",
        ),
        (
            r#"spec.matchResources={"matchPolicy":"x"}"#,
            "NotSupported spec.matchResources.matchPolicy",
        ),
    ];
    let validating = base(
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        object.clone(),
    );
    validating.created(both);
    validating.created(&[
        (
            "spec.validationActions=null",
            "Required spec.validationActions",
        ),
        (
            r#"spec.validationActions=["Deny","Warn"]"#,
            "Invalid spec.validationActions",
        ),
        (
            r#"spec.validationActions=["Audit","Audit"]"#,
            "Duplicate spec.validationActions[1]",
        ),
        (
            r#"spec.validationActions=["x"]"#,
            "NotSupported spec.validationActions[0]",
        ),
    ]);
    base(
        "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
        object,
    )
    .created(both);
}
