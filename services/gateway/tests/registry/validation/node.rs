//! Nodes.

use serde_json::json;

use super::table::Base;

fn node() -> Base {
    Base {
        resource: "nodes",
        object: json!({"metadata": {"name": "node-1"}}),
    }
}

#[tokio::test]
async fn taints() {
    node()
        .created(&[
            (r#"spec.taints=[{"key":"a.io/gpu","value":"b","effect":"NoSchedule"},{"key":"a.io/gpu","effect":"NoExecute"}]"#, ""),
            (r#"spec.taints=[{"key":"gpu","effect":"NoSchedule"},{"key":"gpu","value":"b","effect":"NoSchedule"}]"#, "Duplicate metadata.taints[1]"),
            (r#"spec.taints=[{"key":"gpu","effect":"Never"}]"#, "NotSupported metadata.taints[0].effect"),
            (r#"spec.taints=[{"key":"gpu"}]"#, "Required metadata.taints[0].effect"),
            (r#"spec.taints=[{"key":"a b","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].key"),
            (r#"spec.taints=[{"key":"","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].key, Invalid metadata.taints[0].key"),
            (r#"spec.taints=[{"key":"a","value":"b c","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].value"),
        ])
        .await;
}

#[tokio::test]
async fn names_ranges_and_amounts() {
    node()
        .created(&[
            (r#"metadata.name="Node_1""#, "Invalid metadata.name"),
            (r#"spec.podCIDR="10.0.0.0/24""#, ""),
            (r#"spec.podCIDRs=["10.0.0.0/24","2001:db8::/64"]"#, ""),
            (
                r#"spec.podCIDRs=["10.0.0.0/24","10.0.1.0/24"]"#,
                "Invalid spec.podCIDRs",
            ),
            (
                r#"spec.podCIDRs=["10.0.0.0/24","2001:db8::/64","10.0.1.0/24"]"#,
                "Invalid spec.podCIDRs",
            ),
            (r#"spec.podCIDR="10.0.0.0""#, "Invalid spec.podCIDRs[0]"),
            (r#"spec.podCIDR="10.0.0.1/24""#, "Invalid spec.podCIDRs[0]"),
            (
                r#"status.capacity={"memory":"-1"}"#,
                "Invalid status.capacity.memory",
            ),
            (
                r#"status.nodeInfo={"swap":{"capacity":0}}"#,
                "Invalid metadata.nodeSwapStatus.capacity",
            ),
        ])
        .await;
}

#[tokio::test]
async fn changes() {
    let ranges = "Forbidden spec.podCIDRs";
    node()
        .updated(&[
            ("", r#"spec.podCIDR="10.0.0.0/24""#, ""),
            (
                r#"spec.podCIDR="10.0.0.0/24""#,
                r#"spec.podCIDR="10.0.1.0/24""#,
                ranges,
            ),
            (
                r#"spec.podCIDR="10.0.0.0/24""#,
                "spec.podCIDR=null ; spec.podCIDRs=null",
                ranges,
            ),
            ("", r#"spec.providerID="a""#, ""),
            (
                r#"spec.providerID="a""#,
                r#"spec.providerID="b""#,
                "Forbidden spec.providerID",
            ),
            (
                r#"spec.externalID="a""#,
                r#"spec.externalID="b""#,
                "Forbidden spec.externalID",
            ),
            ("", "spec.unschedulable=true", ""),
            ("", r#"status.capacity={"cpu":"-1"}"#, ""),
        ])
        .await;
}
