//! Roles, bindings and priority classes: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, object: Value) -> Base {
    Base { resource, object }
}

fn binding(resource: &'static str, kind: &str) -> Base {
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "valid"});
    let subjects = json!([
        {"kind": "ServiceAccount", "namespace": "default", "name": "validsaname"},
        {"kind": "User", "name": "valid@username"},
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "valid@groupname"},
    ]);
    base(
        resource,
        json!({"metadata": {"name": "master"}, "roleRef": role, "subjects": subjects}),
    )
}

#[test]
fn rules() {
    let role = |resource| {
        let rule = json!({"verbs": ["get"], "apiGroups": ["v1"], "resources": ["pods"]});
        base(
            resource,
            json!({"metadata": {"name": "some-role"}, "rules": [rule]}),
        )
    };
    let urls = r#"rules[0]={"verbs":["get"],"nonResourceURLs":["/*"]}"#;
    let mixed = r#"rules[0].nonResourceURLs=["/*"]"#;
    let both: &[_] = &[
        ("", ""),
        ("metadata.name=null", "Required metadata.name"),
        (r#"metadata.name="system:some""#, ""),
        (r#"metadata.name="a/b""#, "Invalid metadata.name"),
        ("rules=null", ""),
        ("rules[0].verbs=null", "Required rules[0].verbs"),
        ("rules[0].apiGroups=null", "Required rules[0].apiGroups"),
        ("rules[0].resources=null", "Required rules[0].resources"),
    ];
    role("roles.rbac.authorization.k8s.io").created(both);
    role("roles.rbac.authorization.k8s.io").created(&[
        (urls, "Invalid rules[0].nonResourceURLs"),
        (
            mixed,
            "Invalid rules[0].nonResourceURLs, Invalid rules[0].nonResourceURLs",
        ),
    ]);
    role("clusterroles.rbac.authorization.k8s.io").created(both);
    role("clusterroles.rbac.authorization.k8s.io").created(&[
        (urls, ""),
        (mixed, "Invalid rules[0].nonResourceURLs"),
        (
            r#"rules[0]={"nonResourceURLs":["/*"]}"#,
            "Required rules[0].verbs",
        ),
        (
            "aggregationRule={}",
            "Required aggregationRule.clusterRoleSelectors",
        ),
        (
            r#"aggregationRule={"clusterRoleSelectors":[{"matchLabels":{"foo":"a b"}}]}"#,
            "Invalid aggregationRule.clusterRoleSelectors[0].matchLabels",
        ),
        (
            r#"aggregationRule={"clusterRoleSelectors":[{"matchLabels":{"foo":"bar"}}]}"#,
            "",
        ),
    ]);
}

#[test]
fn bindings() {
    let both: &[_] = &[
        ("", ""),
        ("metadata.name=null", "Required metadata.name"),
        (
            r#"roleRef.apiGroup="rbac.GroupName""#,
            "NotSupported roleRef.apiGroup",
        ),
        (r#"roleRef.kind="Type""#, "NotSupported roleRef.kind"),
        ("roleRef.name=null", "Required roleRef.name"),
        ("roleRef.apiGroup=null", ""),
        (
            r#"subjects=[{"name":"subject"}]"#,
            "NotSupported subjects[0].kind",
        ),
        (
            r#"subjects=[{"namespace":"foo","name":"subject:bad","kind":"ServiceAccount"}]"#,
            "Invalid subjects[0].name",
        ),
        (
            r#"subjects=[{"namespace":"foo","kind":"ServiceAccount"}]"#,
            "Required subjects[0].name",
        ),
        (
            r#"subjects=[{"apiGroup":"a","kind":"User","name":"a"}]"#,
            "NotSupported subjects[0].apiGroup",
        ),
    ];
    let account = r#"subjects=[{"name":"good","kind":"ServiceAccount"}]"#;
    let (role, cluster) = (
        binding("rolebindings.rbac.authorization.k8s.io", "Role"),
        binding(
            "clusterrolebindings.rbac.authorization.k8s.io",
            "ClusterRole",
        ),
    );
    role.created(both);
    role.created(&[(r#"roleRef.kind="ClusterRole""#, ""), (account, "")]);
    cluster.created(both);
    let namespace = "Required subjects[0].namespace";
    let not_cluster = "NotSupported roleRef.kind";
    cluster.created(&[
        (r#"roleRef.kind="Role""#, not_cluster),
        (account, namespace),
    ]);
    for binding in [role, cluster] {
        binding.updated(&[
            ("", r#"roleRef.name="changed""#, "Invalid roleRef"),
            ("", "subjects=null", ""),
        ]);
    }
}

#[test]
fn priority_classes() {
    let class = json!({"metadata": {"name": "tier1"}, "value": 100});
    let class = base("priorityclasses.scheduling.k8s.io", class);
    class.created(&[
        ("", ""),
        ("globalDefault=true", ""),
        ("metadata.name=null", "Required metadata.name"),
        (r#"metadata.name="Tier&1""#, "Invalid metadata.name"),
        ("value=1000000001", "Forbidden value"),
        (r#"metadata.name="system-foo""#, "Forbidden metadata.name"),
        (
            r#"metadata.name="system-node-critical""#,
            "Forbidden metadata.name",
        ),
        (
            r#"metadata.name="system-node-critical" ; value=2000001000"#,
            "",
        ),
        (r#"preemptionPolicy="Never""#, ""),
        (
            r#"preemptionPolicy="Always""#,
            "NotSupported preemptionPolicy",
        ),
    ]);
    class.updated(&[
        ("", "globalDefault=true", ""),
        ("", "value=101", "Forbidden value"),
        (
            "",
            r#"preemptionPolicy="Never""#,
            "Invalid preemptionPolicy",
        ),
    ]);
}

#[test]
fn revisions_and_templates() {
    let revision = json!({"metadata": {"name": "abc"}, "revision": 1, "data": {"foo": "bar"}});
    base("controllerrevisions.apps", revision.clone()).created(&[
        ("", ""),
        ("revision=0", ""),
        ("revision=-1", "Invalid revision"),
        ("data=null", "Required data"),
        ("data=1", "Required data"),
        (r#"metadata.name="Abc.""#, "Invalid metadata.name"),
    ]);
    base("controllerrevisions.apps", revision).updated(&[
        ("", "revision=2", ""),
        ("", r#"data={"foo":"baz"}"#, "Invalid data"),
    ]);
    let spec = json!({"containers": [{"name": "web", "image": "nginx"}]});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
    base(
        "podtemplates",
        json!({"metadata": {"name": "web"}, "template": template}),
    )
    .created(&[
        ("", ""),
        (r#"template.spec.restartPolicy="Never""#, ""),
        (
            "template.spec.containers=null",
            "Required template.spec.containers",
        ),
        (
            r#"template.metadata.labels={"a b":"c"}"#,
            "Invalid template.labels",
        ),
    ]);
}
