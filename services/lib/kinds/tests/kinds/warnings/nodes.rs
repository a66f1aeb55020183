//! Nodes, RuntimeClasses, ServiceAccounts and ResourceQuotas.

use serde_json::json;

use crate::table::Base;

#[test]
fn nodes() {
    const EXTERNAL: &str = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
    let base = Base {
        resource: "nodes",
        object: json!({"metadata": {"name": "node-1"}}),
    };
    base.warned(&[
        ("", &[]),
        (r#"spec.externalID="a""#, &[EXTERNAL]),
        // The field is dropped from new nodes.
        (r#"spec.configSource={"configMap":{"name":"a"}}"#, &[]),
        (
            r#"spec.podCIDRs=["10.0.0.0/24","2001:DB8::/64"] ; spec.podCIDR="10.0.0.0/24""#,
            &[r#"spec.podCIDRs[1]: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")"#],
        ),
    ]);
    base.warned_of_update(&[
        (
            r#"spec.externalID="a""#,
            r#"metadata.labels={"a":"b"}"#,
            &[EXTERNAL],
        ),
        (
            r#"spec.configSource={"configMap":{"namespace":"a","name":"a","kubeletConfigKey":"a"}}"#,
            r#"metadata.labels={"a":"b"}"#,
            &["spec.configSource: the feature is removed"],
        ),
    ]);
}

#[test]
fn runtime_classes() {
    const LABEL: &str =
        r#"scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead"#;
    let base = Base {
        resource: "runtimeclasses.node.k8s.io",
        object: json!({"metadata": {"name": "a"}, "handler": "a"}),
    };
    let change = r#"scheduling={"nodeSelector":{"a":"b","beta.kubernetes.io/os":"linux"}}"#;
    base.warned(&[("", &[]), (change, &[LABEL])]);
    base.warned_of_update(&[("", change, &[LABEL])]);
}

#[test]
fn service_accounts() {
    const ENFORCED: &str = "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
    let base = Base {
        resource: "serviceaccounts",
        object: json!({"metadata": {"name": "a"}}),
    };
    let annotation = r#"metadata.annotations={"kubernetes.io/enforce-mountable-secrets":"true"}"#;
    base.warned(&[("", &[]), (annotation, &[ENFORCED])]);
    base.warned_of_update(&[
        ("", annotation, &[ENFORCED]),
        (annotation, r#"metadata.labels={"a":"b"}"#, &[]),
    ]);
}

#[test]
fn resource_quotas() {
    let base = Base {
        resource: "resourcequotas",
        object: json!({"metadata": {"name": "a"}}),
    };
    let change = r#"spec={"hard":{"cpu":"2","limits.cpu":"1500m"}}"#;
    base.warned(&[
        (
            change,
            &["ResourceQuota cpu (2) should be less than limits.cpu (1500m)"],
        ),
        (r#"spec={"hard":{"cpu":"1","limits.cpu":"1"}}"#, &[]),
        (
            r#"spec={"hard":{"cpu":"1","requests.cpu":"3","limits.cpu":"2"}}"#,
            &["ResourceQuota requests.cpu (3) should be less than limits.cpu (2)"],
        ),
        (
            r#"spec={"hard":{"requests.memory":"2Gi","limits.memory":"1Gi","requests.ephemeral-storage":"2","limits.ephemeral-storage":"1"}}"#,
            &[
                "ResourceQuota requests.memory (2Gi) should be less than limits.memory (1Gi)",
                "ResourceQuota requests.ephemeral-storage (2) should be less than limits.ephemeral-storage (1)",
            ],
        ),
    ]);
    base.warned_of_update(&[("", change, &[])]);
}
