//! PodDisruptionBudgets: the cases of upstream's `validation_test.go`.

use serde_json::json;

use crate::table::Base;

#[test]
fn budgets() {
    let budget = Base {
        resource: "poddisruptionbudgets.policy",
        object: json!({"metadata": {"name": "pdb"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}),
    };
    budget.created(&[
        ("", ""),
        (r#"spec.minAvailable="50%""#, ""),
        (r#"spec.minAvailable="100%""#, ""),
        (r#"spec.minAvailable="101%""#, "Invalid spec.minAvailable"),
        (r#"spec.minAvailable="50""#, "Invalid spec.minAvailable"),
        ("spec.minAvailable=-1", "Invalid spec.minAvailable"),
        ("spec.minAvailable=null", ""),
        (
            r#"spec.minAvailable=null ; spec.maxUnavailable="2""#,
            "Invalid spec.maxUnavailable",
        ),
        ("spec.maxUnavailable=1", "Invalid spec"),
        (r#"spec.unhealthyPodEvictionPolicy="AlwaysAllow""#, ""),
        (
            r#"spec.unhealthyPodEvictionPolicy="""#,
            "NotSupported spec.unhealthyPodEvictionPolicy",
        ),
        (
            r#"spec.selector={"matchLabels":{"a b":"c"}}"#,
            "Invalid spec.selector.matchLabels",
        ),
        (r#"metadata.name="Any_Name""#, ""),
    ]);
    budget.updated(&[("", "spec.minAvailable=2", "")]);
    let condition =
        r#"status={"conditions":[{"type":"DisruptionAllowed","status":"Maybe","reason":"a b"}]}"#;
    budget
        .reported(&[
            ("", r#"status={"disruptionsAllowed":1,"currentHealthy":3,"desiredHealthy":2,"expectedPods":3}"#, ""),
            (
                "",
                r#"status={"disruptionsAllowed":-1,"currentHealthy":-1,"desiredHealthy":-1,"expectedPods":-1}"#,
                "Invalid status.disruptionsAllowed, Invalid status.currentHealthy, Invalid status.desiredHealthy, Invalid status.expectedPods",
            ),
            (
                "",
                condition,
                "NotSupported status.conditions[0].status, Required status.conditions[0].lastTransitionTime, Invalid status.conditions[0].reason",
            ),
        ]);
}
