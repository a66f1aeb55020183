//! Services, whose addresses and ports must be free and in the ranges of the cluster.

use serde_json::json;

use super::table::Base;

fn service() -> Base {
    Base {
        resource: "services",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"ports": [{"port": 80, "name": "http"}], "selector": {"app": "web"}},
        }),
    }
}

/// Checks F19 and K6.
#[tokio::test]
async fn addresses_and_ports() {
    service()
        .created(&[
            (
                r#"spec.type="NodePort" ; spec.ports[0].nodePort=80"#,
                "Invalid spec.ports[0].nodePort",
            ),
            (
                r#"spec.type="NodePort" ; spec.ports[0].nodePort=58930"#,
                "Invalid spec.ports[0].nodePort",
            ),
            (
                r#"spec.type="NodePort" ; spec.ports[0].nodePort=32768"#,
                "Invalid spec.ports[0].nodePort",
            ),
            (
                r#"spec.type="NodePort" ; spec.ports[0].nodePort=-1"#,
                "Invalid spec.ports[0].nodePort",
            ),
            (r#"spec.clusterIP="8.8.8.8""#, "Invalid spec.clusterIPs"),
            (r#"spec.clusterIP="10.96.0.0""#, "Invalid spec.clusterIPs"),
            (r#"spec.ipFamilies=["IPv6"]"#, "Invalid spec.ipFamilies[0]"),
            (
                r#"spec.ipFamilyPolicy="RequireDualStack""#,
                "Invalid spec.ipFamilyPolicy",
            ),
            (r#"spec.clusterIP="fd00::1""#, "Invalid spec.clusterIPs[0]"),
        ])
        .await;
    service()
        .updated(&[
            (
                "",
                r#"spec.type="LoadBalancer" ; spec.clusterIP="None""#,
                "Invalid spec.clusterIPs[0], Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.type="NodePort""#,
                r#"spec.clusterIP="None""#,
                "Invalid spec.clusterIPs[0], Invalid spec.clusterIPs[0]",
            ),
            (
                r#"spec.type="NodePort" ; spec.ports[0].nodePort=30080"#,
                "spec.ports[0].nodePort=81",
                "Invalid spec.ports[0].nodePort",
            ),
        ])
        .await;
}

/// The cluster is single-stack, with IPv4.
#[tokio::test]
async fn families() {
    service()
        .created(&[
            (r#"spec.ipFamilies=["IPv4"]"#, ""),
            (r#"spec.ipFamilies=["no-family"]"#, "NotSupported spec.ipFamilies[0]"),
            (r#"spec.ipFamilies=["IPv4","no-family"] ; spec.ipFamilyPolicy="RequireDualStack""#, "NotSupported spec.ipFamilies[1]"),
            (r#"spec.ipFamilies=["IPv4","IPv6","IPv4"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Duplicate spec.ipFamilies[2]"),
            (r#"spec.ipFamilies=["IPv6","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Duplicate spec.ipFamilies[1]"),
            (r#"spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="SingleStack""#, "Invalid spec.ipFamilyPolicy"),
            (r#"spec.ipFamilies=["IPv4","IPv6"]"#, "Invalid spec.ipFamilyPolicy"),
            (r#"spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="PreferDualStack""#, "Invalid spec.ipFamilies[1]"),
            (r#"spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[1]"),
            (r#"spec.ipFamilies=["IPv6","IPv4"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[0]"),
            (r#"spec.ipFamilies=["IPv6"] ; spec.ipFamilyPolicy="PreferDualStack""#, "Invalid spec.ipFamilies[0]"),
            (r#"spec.ipFamilies=["IPv6"] ; spec.ipFamilyPolicy="SingleStack""#, "Invalid spec.ipFamilies[0]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","fd00::1"] ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="SingleStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilyPolicy"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","fd00::1"] ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[1]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","fd00::1"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="10.96.0.1" ; spec.clusterIPs=["10.96.0.1","fd00::1"] ; spec.ipFamilies=["IPv4"] ; spec.ipFamilyPolicy="PreferDualStack""#, "Invalid spec.clusterIPs[1]"),
            (r#"spec.clusterIP="None" ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[1]"),
            (r#"spec.clusterIP="None" ; spec.selector=null ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, ""),
            (r#"spec.clusterIP="None" ; spec.selector=null ; spec.ipFamilies=["IPv6"]"#, ""),
        ])
        .await;
    let unmanaged = r#"spec.clusterIP="None" ; spec.selector=null"#;
    service()
        .updated(&[
            ("", r#"spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy"),
            ("", r#"spec.ipFamilyPolicy="PreferDualStack""#, ""),
            ("", r#"spec.ipFamilies=["IPv6"]"#, "Invalid spec.clusterIPs[0], Invalid spec.ipFamilies[0]"),
            ("", r#"spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[1]"),
            ("", "spec.ipFamilies=null ; spec.ipFamilyPolicy=null", ""),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIPs[1]="fd00::1" ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.ipFamilyPolicy, Invalid spec.ipFamilies[1]"),
            (r#"spec.clusterIP="10.96.0.7""#, r#"spec.clusterIP="10.96.0.8" ; spec.ipFamilies=["IPv4","IPv6"] ; spec.ipFamilyPolicy="RequireDualStack""#, "Invalid spec.clusterIPs[0]"),
            (unmanaged, r#"spec.ipFamilies=["IPv6","IPv4"]"#, ""),
            (unmanaged, r#"spec.ipFamilyPolicy="SingleStack""#, ""),
            (unmanaged, r#"spec.ipFamilyPolicy="SingleStack" ; spec.ipFamilies=["IPv6"]"#, ""),
            (unmanaged, r#"spec.ipFamilies=["IPv4"]"#, "Invalid spec.ipFamilyPolicy"),
        ])
        .await;
}
