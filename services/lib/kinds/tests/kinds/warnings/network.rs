//! Ingresses and NetworkPolicies.

use serde_json::json;

use crate::table::Base;

#[test]
fn ingresses() {
    const CLASS: &str = r#"annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead"#;
    let annotation = r#"metadata.annotations={"kubernetes.io/ingress.class":"a"}"#;
    let base = Base {
        resource: "ingresses.networking.k8s.io",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
        }),
    };
    base.warned(&[
        ("", &[]),
        (annotation, &[CLASS]),
        (
            r#"metadata.annotations={"kubernetes.io/ingress.class":"a"} ; spec.ingressClassName="a""#,
            &[],
        ),
    ]);
    base.warned_of_update(&[("", annotation, &[])]);
    base.warned_of_status(&[(
        "",
        r#"status.loadBalancer={"ingress":[{"ip":"1.2.3.4"},{"ip":"2001:DB8::1"}]}"#,
        &[r#"status.loadBalancer.ingress[1]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#],
    )]);
}

#[test]
fn network_policies() {
    const CIDR: &str = r#"spec.ingress[0].from[1].ipBlock.cidr: IPv6 CIDR value "2001:DB8::/32" should be in RFC 5952 canonical format ("2001:db8::/32")"#;
    const EXCEPT: &str = r#"spec.ingress[0].from[1].ipBlock.except[0]: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")"#;
    let base = Base {
        resource: "networkpolicies.networking.k8s.io",
        object: json!({"metadata": {"name": "web"}, "spec": {
            "podSelector": {},
            "ingress": [{"from": [{"podSelector": {}}, {"ipBlock": {"cidr": "2001:DB8::/32", "except": ["2001:DB8::/64"]}}]}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        }}),
    };
    base.warned(&[("", &[CIDR, EXCEPT]), ("spec.ingress=[]", &[])]);
    base.warned_of_update(&[(
        r#"spec.egress[0].to[0].ipBlock.cidr="10.0.0.1/8""#,
        "spec.ingress=[]",
        &[r#"spec.egress[0].to[0].ipBlock.cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)"#],
    )]);
}
