//! Services.

use serde_json::json;

use crate::table::Base;

fn service() -> Base {
    Base {
        resource: "services",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"app": "web"}},
        }),
    }
}

#[test]
fn creates() {
    const DEPRECATED: &str =
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
    service().warned(&[
        ("", &[]),
        (
            r#"metadata.annotations={"service.kubernetes.io/topology-aware-hints":"auto"}"#,
            &["annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead"],
        ),
        (
            r#"spec.clusterIP="2001:db8:0::1" ; spec.clusterIPs=["2001:db8:0::1"]"#,
            &[r#"spec.clusterIPs[0]: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")"#],
        ),
        (
            r#"spec.clusterIP="None" ; spec.externalIPs=["1.2.3.4"] ; spec.sessionAffinity="ClientIP""#,
            &[
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
            ],
        ),
        (
            r#"spec.clusterIP="None" ; spec.loadBalancerIP="1.2.3.4""#,
            &["spec.loadBalancerIP is ignored for headless services"],
        ),
        (r#"spec.externalIPs=["1.2.3.4"]"#, &[DEPRECATED]),
        (
            r#"spec.externalIPs=["2001:db8:0::1"]"#,
            &[
                r#"spec.externalIPs[0]: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
                DEPRECATED,
            ],
        ),
        (
            r#"spec.type="LoadBalancer" ; spec.loadBalancerIP="2001:DB8::1" ; spec.loadBalancerSourceRanges=["2001:DB8::/64"]"#,
            &[
                r#"spec.loadBalancerIP: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
                r#"spec.loadBalancerSourceRanges[0]: IPv6 CIDR value "2001:DB8::/64" should be in RFC 5952 canonical format ("2001:db8::/64")"#,
            ],
        ),
        (
            r#"spec.type="ExternalName" ; spec.externalName="example.com" ; spec.externalIPs=["1.2.3.4"]"#,
            &[r#"spec.externalIPs is ignored when spec.type is "ExternalName""#],
        ),
        (
            r#"spec.externalName="example.com""#,
            &[r#"spec.externalName is ignored when spec.type is not "ExternalName""#],
        ),
        (
            r#"spec.trafficDistribution="PreferClose""#,
            &[r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#],
        ),
    ]);
}

/// Addresses that were stored before a rule existed are accepted.
#[test]
fn updates() {
    let change = r#"metadata.labels={"a":"b"}"#;
    service().warned_of_update(&[
        ("", change, &[]),
        (
            r#"spec.externalName="example.com""#,
            change,
            &[r#"spec.externalName is ignored when spec.type is not "ExternalName""#],
        ),
        (
            r#"spec.type="LoadBalancer" ; spec.loadBalancerSourceRanges=["10.0.0.1/8"]"#,
            change,
            &[r#"spec.loadBalancerSourceRanges[0]: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)"#],
        ),
        (
            r#"spec.externalIPs=["010.0.0.1"]"#,
            change,
            &[
                r#"spec.externalIPs[0]: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1""#,
                "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
            ],
        ),
    ]);
}

#[test]
fn statuses() {
    service().warned_of_status(&[(
        r#"spec.type="LoadBalancer" ; spec.externalName="example.com""#,
        r#"status.loadBalancer={"ingress":[{"hostname":"a"},{"ip":"2001:DB8::1"}]}"#,
        &[r#"status.loadBalancer.ingress[1]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#],
    )]);
}
