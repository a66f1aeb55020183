//! HorizontalPodAutoscalers: the cases of upstream's `validation_test.go`.

use serde_json::json;

use crate::table::Base;

#[test]
fn autoscalers() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let autoscaler = Base {
        resource: "horizontalpodautoscalers.autoscaling",
        object: json!({"metadata": {"name": "myautoscaler"}, "spec": {"scaleTargetRef": target, "maxReplicas": 5}}),
    };
    autoscaler
        .created(&[
            ("", ""),
            ("spec.minReplicas=0", "Invalid spec.minReplicas, Forbidden spec.metrics"),
            ("spec.maxReplicas=null", "Required spec.maxReplicas, Invalid spec.maxReplicas"),
            ("spec.maxReplicas=-1", "Invalid spec.maxReplicas, Invalid spec.maxReplicas"),
            ("spec.minReplicas=7", "Invalid spec.maxReplicas"),
            ("spec.scaleTargetRef.kind=null", "Required spec.scaleTargetRef.kind"),
            (r#"spec.scaleTargetRef.kind="..""#, "Invalid spec.scaleTargetRef.kind"),
            ("spec.scaleTargetRef.name=null", "Required spec.scaleTargetRef.name"),
            (r#"spec.scaleTargetRef.apiVersion="v1""#, "Invalid spec.scaleTargetRef.apiVersion"),
            (r#"spec.scaleTargetRef.apiVersion="a/b/c""#, "Invalid spec.scaleTargetRef.apiVersion"),
            (r#"spec.scaleTargetRef={"apiVersion":"v1","kind":"ReplicationController","name":"web"}"#, ""),
            (r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":70}}}]"#, ""),
            (
                r#"spec.metrics=[{"type":"Resource"}]"#,
                "Required spec.metrics[0].resource",
            ),
            (
                r#"spec.metrics=[{"type":"Other"}]"#,
                "NotSupported spec.metrics[0].type, NotSupported spec.metrics[0].type",
            ),
            (
                r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}}]"#,
                "Required spec.metrics[0].resource.target.averageUtilization",
            ),
            (
                r#"spec.metrics=[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":0,"averageValue":"0"}}}]"#,
                "Invalid spec.metrics[0].resource.target.averageUtilization, Invalid spec.metrics[0].resource.target.averageValue, Forbidden spec.metrics[0].resource.target.averageValue",
            ),
            (
                r#"spec.metrics=[{"type":"Pods","pods":{"metric":{"name":"a/b"},"target":{"type":"AverageValue"}}}]"#,
                "Invalid spec.metrics[0].pods.metric.name, Required spec.metrics[0].pods.target.averageValue",
            ),
            (
                r#"spec.metrics=[{"type":"External","external":{"metric":{"name":"a"},"target":{"type":"Value","value":"1","averageValue":"1"}}}]"#,
                "Forbidden spec.metrics[0].external.target.value",
            ),
            (
                r#"spec.metrics=[{"type":"Object","object":{"describedObject":{"kind":"Pod","name":"a","apiVersion":"v1"},"metric":{"name":"a"},"target":{"type":"Value","value":"1"}}}]"#,
                "",
            ),
            (
                r#"spec.metrics=[{"type":"ContainerResource","containerResource":{"name":"cpu","container":"a","target":{"type":"Utilization","averageUtilization":1}}}]"#,
                "",
            ),
            (
                r#"spec.metrics=[{"type":"Pods","pods":{"metric":{"name":"a"},"target":{"type":"AverageValue","averageValue":"1"}},"resource":{"name":"cpu","target":{"type":"Utilization"}}}]"#,
                "Forbidden spec.metrics[0].resource",
            ),
            (r#"spec.behavior={"scaleUp":{"stabilizationWindowSeconds":0}}"#, ""),
            (
                r#"spec.behavior={"scaleDown":{"stabilizationWindowSeconds":3601,"selectPolicy":"Other"}}"#,
                "Invalid spec.behavior.scaleDown.stabilizationWindowSeconds, NotSupported spec.behavior.scaleDown.selectPolicy",
            ),
            (
                r#"spec.behavior={"scaleUp":{"policies":[{"type":"Hours","value":0,"periodSeconds":1801}]}}"#,
                "NotSupported spec.behavior.scaleUp.policies[0].type, Invalid spec.behavior.scaleUp.policies[0].value, Invalid spec.behavior.scaleUp.policies[0].periodSeconds",
            ),
            (r#"spec.behavior={"scaleUp":{"tolerance":"-1"}}"#, "Invalid spec.behavior.scaleUp.tolerance"),
        ]);
    autoscaler.reported(&[
        (
            "",
            r#"status={"currentReplicas":1,"desiredReplicas":2}"#,
            "",
        ),
        (
            "",
            r#"status={"currentReplicas":-1,"desiredReplicas":-2}"#,
            "Invalid status.currentReplicas, Invalid status.desiredReplicas",
        ),
    ]);
}
