//! Nodes.

use serde_json::json;

use crate::table::Base;

fn node() -> Base {
    Base {
        resource: "nodes",
        object: json!({"metadata": {"name": "node-1"}}),
    }
}

#[test]
fn taints() {
    node()
        .created(&[
            (r#"spec.taints=[{"key":"a.io/gpu","value":"b","effect":"NoSchedule"},{"key":"a.io/gpu","effect":"NoExecute"}]"#, ""),
            (r#"spec.taints=[{"key":"gpu","effect":"NoSchedule"},{"key":"gpu","value":"b","effect":"NoSchedule"}]"#, "Duplicate metadata.taints[1]"),
            (r#"spec.taints=[{"key":"GPU","value":"true","effect":"NoSchedule"}]"#, ""),
            (r#"spec.taints=[{"key":"NoSpecialCharsLike=Equals","effect":"NoSchedule"}]"#, "Invalid metadata.taints[0].key"),
            (r#"spec.taints=[{"key":"gpu","value":"some\\bad\\value-which-is-also-much-longer-than-the-value-of-a-label-may-be","effect":"NoSchedule"}]"#, "Invalid metadata.taints[0].value"),
            (r#"spec.taints=[{"key":"gpu","effect":"Never"}]"#, "NotSupported metadata.taints[0].effect"),
            (r#"spec.taints=[{"key":"gpu"}]"#, "Required metadata.taints[0].effect"),
            (r#"spec.taints=[{"key":"a b","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].key"),
            (r#"spec.taints=[{"key":"","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].key, Invalid metadata.taints[0].key"),
            (r#"spec.taints=[{"key":"a","value":"b c","effect":"NoExecute"}]"#, "Invalid metadata.taints[0].value"),
        ]);
}

#[test]
fn annotations_and_features() {
    let signature = "Required metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature";
    node()
        .created(&[
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{\"podSignature\":{\"podController\":{\"kind\":\"ReplicaSet\",\"controller\":true}}}]}"}"#, ""),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{\"reason\":\"some\"}]}"}"#, signature),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{\"podSignature\":{\"podController\":{\"kind\":\"ReplicaSet\",\"controller\":false}}}]}"}"#, "Invalid metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature.PodController.Controller"),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"no"}"#, "Invalid metadata.annotations.AvoidPods"),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/taints":"no"}"#, "Invalid metadata.annotations"),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/taints":"[{\"key\":\"a\"}]"}"#, "Required metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect"),
            (r#"metadata.annotations={"scheduler.alpha.kubernetes.io/taints":"[{\"key\":\"a\",\"effect\":\"NoSchedule\"}]"}"#, ""),
            ("status.declaredFeatures=[]", ""),
            (r#"status.declaredFeatures=["Another","Mine","Mine/sub"]"#, ""),
            (r#"status.declaredFeatures=["Mine","Mine"]"#, "Duplicate status.declaredFeatures[1]"),
            (r#"status.declaredFeatures=["Mine","Another"]"#, "Invalid status.declaredFeatures[1]"),
            (r#"status.declaredFeatures=["Another","invalid","Mine"]"#, "Invalid status.declaredFeatures[1], Invalid status.declaredFeatures[2]"),
            (r#"status.declaredFeatures=["mine"]"#, "Invalid status.declaredFeatures[0]"),
            (r#"status.declaredFeatures=["Feature-name"]"#, "Invalid status.declaredFeatures[0]"),
            (r#"status.declaredFeatures=["Mine/"]"#, "Invalid status.declaredFeatures[0]"),
            (r#"spec.configSource={"configMap":{}}"#, ""),
        ]);
    node()
        .updated(&[
            ("", r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{\"podSignature\":{\"podController\":{\"controller\":true}}}]}"}"#, ""),
            ("", r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{\"reason\":\"some\"}]}"}"#, signature),
            ("", r#"spec.configSource={"configMap":{}}"#, ""),
        ]);
    let mut long = node();
    long.object["status"] = json!({"declaredFeatures": [format!("F{}", "e".repeat(253))]});
    let expected = "Invalid status.declaredFeatures[0]";
    long.created(&[("", expected)]);
}

#[test]
fn names_ranges_and_amounts() {
    node()
        .created(&[
            (r#"metadata.name="Node_1""#, "Invalid metadata.name"),
            ("metadata.name=null", "Required metadata.name"),
            (r#"metadata.namespace="staging""#, ""),
            (r#"metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"b"}"#, "Invalid metadata.labels"),
            (r#"status.capacity={"cpu":"10","memory":"0","my.org/gpu":"10","hugepages-2Mi":"10Gi","hugepages-1Gi":"0"}"#, ""),
            (r#"status.addresses=[{"type":"ExternalIP","address":"something"}]"#, ""),
            ("spec.podCIDRs=[]", ""),
            (r#"spec.podCIDRs=["2000::/10"]"#, ""),
            (r#"spec.podCIDRs=["2000::/10","192.168.0.0/16"]"#, ""),
            (r#"spec.podCIDRs=["no-range"]"#, "Invalid spec.podCIDRs[0]"),
            (r#"spec.podCIDRs=["192.168.000.000/16"]"#, "Invalid spec.podCIDRs[0]"),
            (r#"spec.podCIDRs=["10.0.0.1/16","10.0.0.1/16"]"#, "Invalid spec.podCIDRs, Invalid spec.podCIDRs[0], Invalid spec.podCIDRs[1]"),
            (r#"spec.podCIDRs=["2000::/10","2000::/10"]"#, "Invalid spec.podCIDRs"),
            (r#"spec.podCIDRs=["2000::/10","3000::/10"]"#, "Invalid spec.podCIDRs"),
            (r#"spec.podCIDRs=["2000::/10","10.0.0.0/16","3000::/10"]"#, "Invalid spec.podCIDRs"),
            (r#"status.nodeInfo={"swap":{}}"#, ""),
            (r#"status.nodeInfo={"swap":{"capacity":123456}}"#, ""),
            (r#"status.nodeInfo={"swap":{"capacity":-123456}}"#, "Invalid metadata.nodeSwapStatus.capacity"),
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
        ]);
}

#[test]
fn changes() {
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
            ("", r#"metadata.name="bar""#, "BadRequest"),
            (r#"metadata.labels={"foo":"baz"}"#, r#"metadata.labels={"Foo":"baz"}"#, ""),
            (r#"spec.podCIDRs=["192.168.0.0/16","2000::/10"]"#, r#"metadata.labels={"a":"b"}"#, ""),
            (r#"spec.podCIDRs=["192.168.0.0/16","2000::/10"]"#, r#"spec.podCIDRs=["192.168.0.0/16"]"#, "Forbidden spec.podCIDRs"),
            (r#"spec.podCIDRs=["192.168.0.0/16","2000::/10"]"#, r#"spec.podCIDR="2000::/10" ; spec.podCIDRs=["2000::/10","192.168.0.0/16"]"#, "Forbidden spec.podCIDRs"),
            (r#"status.addresses=[{"type":"ExternalIP","address":"1.1.1.1"},{"type":"ExternalIP","address":"1.1.1.1"}]"#, r#"metadata.labels={"a":"b"}"#, "Duplicate status.addresses[1]"),
            ("", r#"status.capacity={"cpu":"-1"}"#, ""),
        ]);
}
