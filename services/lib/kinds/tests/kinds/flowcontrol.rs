//! FlowSchemas and PriorityLevelConfigurations: the cases of upstream's `validation_test.go`.

use serde_json::json;

use crate::table::Base;

#[test]
fn flow_schemas() {
    let rule = json!({
        "subjects": [{ "kind": "User", "user": { "name": "noxu" } }],
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"] }],
    });
    let schema = Base {
        resource: "flowschemas.flowcontrol.apiserver.k8s.io",
        object: json!({ "metadata": { "name": "system-foo" }, "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": { "name": "system-bar" },
            "rules": [rule],
        } }),
    };
    schema
        .created(&[
            ("", ""),
            ("spec.matchingPrecedence=null", ""),
            ("spec.matchingPrecedence=1", "Invalid spec.matchingPrecedence"),
            ("spec.matchingPrecedence=-1", "Invalid spec.matchingPrecedence"),
            ("spec.matchingPrecedence=10001", "Invalid spec.matchingPrecedence"),
            (
                "spec.priorityLevelConfiguration.name=null",
                "Required spec.priorityLevelConfiguration.name",
            ),
            (
                r#"spec.distinguisherMethod={"type":"x"}"#,
                "NotSupported spec.distinguisherMethod.type",
            ),
            (r#"metadata.name="exempt""#, "Invalid spec"),
            ("spec.rules[0].subjects=[]", "Required spec.rules[0].subjects"),
            ("spec.rules[0].resourceRules=null", "Required spec.rules[0]"),
            (
                r#"spec.rules[0].subjects[0].kind="Group""#,
                "Forbidden spec.rules[0].subjects[0].user, Required spec.rules[0].subjects[0].group",
            ),
            (
                r#"spec.rules[0].subjects[0]={"kind":"ServiceAccount","serviceAccount":{"name":"*"}}"#,
                "Required spec.rules[0].subjects[0].serviceAccount.namespace",
            ),
            (r#"spec.rules[0].subjects[0].kind="x""#, "NotSupported spec.rules[0].subjects[0].kind"),
            (
                r#"spec.rules[0].resourceRules[0].verbs=["feed"]"#,
                "NotSupported spec.rules[0].resourceRules[0].verbs",
            ),
            (
                r#"spec.rules[0].resourceRules[0].verbs=["*","get"]"#,
                "Invalid spec.rules[0].resourceRules[0].verbs",
            ),
            (
                "spec.rules[0].resourceRules[0].namespaces=[]",
                "Required spec.rules[0].resourceRules[0].namespaces",
            ),
            (
                r#"spec.rules[0].resourceRules[0].namespaces=["-"]"#,
                "Invalid spec.rules[0].resourceRules[0].namespaces[0]",
            ),
            (
                r#"spec.rules[0].nonResourceRules=[{"verbs":["get"],"nonResourceURLs":["a","/a b","//","/*/","/a*","/*"]}]"#,
                "Invalid spec.rules[0].nonResourceRules[0].nonResourceURLs[0], Invalid spec.rules[0].nonResourceRules[0].nonResourceURLs[1], Invalid spec.rules[0].nonResourceRules[0].nonResourceURLs[2], Invalid spec.rules[0].nonResourceRules[0].nonResourceURLs[3], Invalid spec.rules[0].nonResourceRules[0].nonResourceURLs[4]",
            ),
        ]);
    schema.reported(&[
        (
            "",
            r#"status.conditions=[{"type":"a"},{"type":"a"}]"#,
            "Duplicate status.conditions[1].type",
        ),
        (
            "",
            r#"status.conditions=[{"status":"True"}]"#,
            "Required status.conditions[0].type",
        ),
    ]);
}

#[test]
fn priority_levels() {
    let level = Base {
        resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        object: json!({ "metadata": { "name": "foo" }, "spec": {
            "type": "Limited",
            "limited": { "nominalConcurrencyShares": 100, "limitResponse": { "type": "Queue", "queuing": {
                "queues": 64, "handSize": 6, "queueLengthLimit": 50,
            } } },
        } }),
    };
    level
        .created(&[
            ("", ""),
            ("spec.limited=null", "Required spec.limited"),
            (r#"spec.type="Exempt""#, "Invalid spec.type, Forbidden spec.limited"),
            (r#"spec.type="x""#, "NotSupported spec.type"),
            ("spec.exempt={}", "Forbidden spec.exempt"),
            ("spec.limited.nominalConcurrencyShares=-1", "Invalid spec.limited.nominalConcurrencyShares"),
            ("spec.limited.lendablePercent=101", "Invalid spec.limited.lendablePercent"),
            ("spec.limited.borrowingLimitPercent=-1", "Invalid spec.limited.borrowingLimitPercent"),
            (r#"spec.limited.limitResponse.type="Reject""#, "Forbidden spec.limited.limitResponse.queuing"),
            ("spec.limited.limitResponse.queuing=null", "Required spec.limited.limitResponse.queuing"),
            (
                r#"spec.limited.limitResponse.queuing={"queues":-1,"handSize":-1,"queueLengthLimit":-1}"#,
                "Invalid spec.limited.limitResponse.queuing.queueLengthLimit, Invalid spec.limited.limitResponse.queuing.queues, Invalid spec.limited.limitResponse.queuing.handSize",
            ),
            (
                "spec.limited.limitResponse.queuing.handSize=65",
                "Invalid spec.limited.limitResponse.queuing.handSize",
            ),
            (
                r#"spec.limited.limitResponse.queuing={"queues":128,"handSize":10}"#,
                "Invalid spec.limited.limitResponse.queuing.handSize",
            ),
            (r#"metadata.name="catch-all""#, "Invalid spec"),
        ]);
}
