//! ReplicationControllers, StatefulSets and DaemonSets: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn base(resource: &'static str, selector: &Value, more: &Value) -> Base {
    let mut spec = json!({
        "selector": selector,
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "abc", "image": "image"}]},
        },
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    Base {
        resource,
        object: json!({"metadata": {"name": "abc"}, "spec": spec}),
    }
}

fn controller() -> Base {
    base(
        "replicationcontrollers",
        &json!({"a": "b"}),
        &json!({"replicas": 1}),
    )
}

fn stateful() -> Base {
    let selector = json!({"matchLabels": {"a": "b"}});
    base(
        "statefulsets.apps",
        &selector,
        &json!({"serviceName": "svc"}),
    )
}

fn daemon() -> Base {
    base(
        "daemonsets.apps",
        &json!({"matchLabels": {"a": "b"}}),
        &json!({}),
    )
}

#[test]
fn replication_controllers() {
    controller()
        .created(&[
            ("", ""),
            (r#"metadata.name="abc-123""#, ""),
            ("metadata.name=null", "Required metadata.name"),
            (r#"metadata.name="Abc""#, "Invalid metadata.name"),
            ("spec.selector=null", ""),
            ("spec.selector=null ; spec.template.metadata.labels=null", "Required spec.selector"),
            (r#"spec.selector={"foo":"bar"}"#, "Invalid spec.template.metadata.labels"),
            ("spec.template=null", "Required spec.template"),
            ("spec.replicas=-1", "Invalid spec.replicas"),
            ("spec.replicas=null", ""),
            ("spec.minReadySeconds=-1", "Invalid spec.minReadySeconds"),
            (r#"metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"bar"}"#, "Invalid metadata.labels"),
            (
                r#"spec.selector=null ; spec.template.metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"bar"} ; metadata.labels={"a":"b"}"#,
                "Invalid spec.template.labels",
            ),
            (r#"spec.template.spec.restartPolicy="OnFailure""#, "NotSupported spec.template.spec.restartPolicy"),
            ("spec.template.spec.activeDeadlineSeconds=1", "Forbidden spec.template.spec.activeDeadlineSeconds"),
            (
                r#"spec.template.spec.ephemeralContainers=[{"name":"ephemeral","image":"image"}]"#,
                "Forbidden spec.template.spec.ephemeralContainers",
            ),
        ]);
    controller().updated(&[
        ("", "spec.replicas=2", ""),
        (
            "",
            r#"spec.selector={"c":"d"} ; spec.template.metadata.labels={"c":"d"}"#,
            "",
        ),
        (
            "",
            r#"spec.selector={"c":"d"}"#,
            "Invalid spec.template.metadata.labels",
        ),
        ("", "spec.replicas=-1", "Invalid spec.replicas"),
    ]);
    controller()
        .reported(&[
            ("", r#"status={"replicas":2,"fullyLabeledReplicas":2,"readyReplicas":2,"availableReplicas":1}"#, ""),
            ("", r#"status={"replicas":-1}"#, "Invalid status.replicas, Invalid status.availableReplicas, Invalid status.fullyLabeledReplicas, Invalid status.readyReplicas"),
            ("", r#"status={"replicas":1,"fullyLabeledReplicas":2}"#, "Invalid status.fullyLabeledReplicas"),
            ("", r#"status={"replicas":3,"readyReplicas":1,"availableReplicas":2}"#, "Invalid status.availableReplicas"),
            ("", r#"status={"observedGeneration":-1}"#, "Invalid status.observedGeneration"),
        ]);
}

#[test]
fn stateful_sets() {
    let claim = r#"spec.volumeClaimTemplates=[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]"#;
    stateful()
        .created(&[
            ("", ""),
            ("spec.serviceName=null", ""),
            (r#"spec.serviceName="Invalid.service""#, "Invalid spec.serviceName"),
            (r#"metadata.name="a.b""#, "Invalid metadata.name"),
            (r#"spec.podManagementPolicy="Parallel""#, ""),
            (r#"spec.podManagementPolicy="foo""#, "Invalid spec.podManagementPolicy"),
            (r#"spec.updateStrategy={"type":"OnDelete"}"#, ""),
            (r#"spec.updateStrategy={"type":"foo"}"#, "Invalid spec.updateStrategy"),
            (
                r#"spec.updateStrategy={"type":"OnDelete","rollingUpdate":{"partition":1}}"#,
                "Invalid spec.updateStrategy.rollingUpdate",
            ),
            (
                r#"spec.updateStrategy={"type":"RollingUpdate","rollingUpdate":{"partition":-1}}"#,
                "Invalid spec.updateStrategy.rollingUpdate.partition",
            ),
            ("spec.replicas=-1", "Invalid spec.replicas"),
            ("spec.minReadySeconds=-1", "Invalid spec.minReadySeconds"),
            ("spec.revisionHistoryLimit=-1", ""),
            (r#"spec.ordinals={"start":-2}"#, "Invalid spec.ordinals.start"),
            (
                r#"spec.persistentVolumeClaimRetentionPolicy={"whenDeleted":"other","whenScaled":"Retain"}"#,
                "NotSupported spec.persistentVolumeClaimRetentionPolicy.whenDeleted",
            ),
            ("spec.selector=null", "Required spec.selector, Invalid spec.template.metadata.labels"),
            ("spec.selector={}", "Invalid spec.selector"),
            (r#"spec.selector={"matchLabels":{"foo":"bar"}}"#, "Invalid spec.template.metadata.labels"),
            (
                r#"spec.selector={"matchLabels":{"a":"b","c":"-d"}}"#,
                "Invalid spec.selector.matchLabels, Invalid spec.selector",
            ),
            (r#"spec.template.spec.restartPolicy="Never""#, "NotSupported spec.template.spec.restartPolicy"),
            ("spec.template.spec.activeDeadlineSeconds=1", "Forbidden spec.template.spec.activeDeadlineSeconds"),
            (r#"spec.template.metadata.labels={"a":"b","a b":"c"}"#, "Invalid spec.template.labels, Invalid spec.template.labels"),
            (r#"spec.template.spec.hostname="Not.valid""#, ""),
            (claim, ""),
            (r#"spec.template.spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/d"}]"#, "NotFound spec.template.spec.containers[0].volumeMounts[0].name"),
            (r#"spec.volumeClaimTemplates=[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}] ; spec.template.spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/d"}]"#, ""),
            // As upstream, two claims of one name are accepted.
            (r#"spec.volumeClaimTemplates=[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}},{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"2Gi"}}}}] ; spec.template.spec.containers[0].volumeMounts=[{"name":"data","mountPath":"/d"}]"#, ""),
            (
                r#"spec.volumeClaimTemplates=[{"metadata":{"name":"data"},"spec":{"resources":{"requests":{"storage":"1Gi"}}}}]"#,
                "Required spec.volumeClaimTemplates[0].spec.accessModes",
            ),
        ]);
    let forbidden = "Forbidden spec";
    stateful().updated(&[
        (
            "",
            "spec.replicas=5 ; spec.minReadySeconds=1 ; spec.revisionHistoryLimit=3",
            "",
        ),
        ("", r#"spec.ordinals={"start":5}"#, ""),
        ("", r#"spec.template.spec.containers[0].image="other""#, ""),
        ("", r#"spec.updateStrategy={"type":"OnDelete"}"#, ""),
        (
            "",
            r#"spec.persistentVolumeClaimRetentionPolicy={"whenDeleted":"Delete"}"#,
            "",
        ),
        ("", r#"spec.serviceName="foo""#, forbidden),
        ("", r#"spec.podManagementPolicy="Parallel""#, forbidden),
        ("", claim, forbidden),
        ("", "spec.replicas=-1", "Invalid spec.replicas"),
        (
            "",
            r#"spec.selector={"matchLabels":{"c":"d"}} ; spec.template.metadata.labels={"c":"d"}"#,
            forbidden,
        ),
    ]);
    stateful()
        .reported(&[
            ("", r#"status={"replicas":3,"readyReplicas":3,"currentReplicas":2,"updatedReplicas":1,"availableReplicas":3,"observedGeneration":2}"#, ""),
            ("", r#"status={"replicas":1,"currentReplicas":3}"#, "Invalid status.currentReplicas"),
            ("", r#"status={"replicas":3,"readyReplicas":-1}"#, "Invalid status.readyReplicas, Invalid status.availableReplicas"),
            ("", r#"status={"replicas":3,"readyReplicas":1,"availableReplicas":2}"#, "Invalid status.availableReplicas"),
            ("", r#"status={"observedGeneration":-1}"#, "Invalid status.observedGeneration"),
            (r#"status={"collisionCount":2}"#, r#"status={"collisionCount":1}"#, "Invalid status.collisionCount"),
        ]);
}

#[test]
fn daemon_sets() {
    daemon().created(&[
        ("", ""),
        (r#"metadata.name="abc.def""#, ""),
        ("metadata.name=null", "Required metadata.name"),
        (
            "spec.selector=null",
            "Invalid spec.template.metadata.labels",
        ),
        ("spec.selector={}", "Invalid spec.selector"),
        (
            r#"spec.selector={"matchLabels":{"foo":"bar"}}"#,
            "Invalid spec.template.metadata.labels",
        ),
        (
            r#"spec.template.metadata.labels={"a":"b","a b":"c"}"#,
            "Invalid spec.template.labels",
        ),
        (
            r#"spec.template.spec.restartPolicy="OnFailure""#,
            "NotSupported spec.template.spec.restartPolicy",
        ),
        (
            "spec.template.spec.activeDeadlineSeconds=1",
            "Forbidden spec.template.spec.activeDeadlineSeconds",
        ),
        ("spec.minReadySeconds=-1", "Invalid spec.minReadySeconds"),
        (
            "spec.revisionHistoryLimit=-1",
            "Invalid spec.revisionHistoryLimit",
        ),
        (r#"spec.updateStrategy={"type":"OnDelete"}"#, ""),
        (
            r#"spec.updateStrategy={"type":"Random"}"#,
            "NotSupported spec.updateStrategy",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":"20%"}}"#,
            "",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}"#,
            "",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":"10%","maxSurge":"10%"}}"#,
            "Invalid spec.updateStrategy.rollingUpdate.maxSurge",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":0}}"#,
            "Required spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":"101%"}}"#,
            "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":0,"maxSurge":"1000%"}}"#,
            "Invalid spec.updateStrategy.rollingUpdate.maxSurge",
        ),
        (
            r#"spec.updateStrategy={"rollingUpdate":{"maxUnavailable":"foo","maxSurge":1}}"#,
            "Invalid spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
    ]);
    daemon().updated(&[
        ("", r#"spec.template.spec.containers[0].image="other""#, ""),
        ("", r#"spec.template.spec.nodeName="n1""#, ""),
        (
            "",
            r#"spec.selector={"matchLabels":{"c":"d"}} ; spec.template.metadata.labels={"c":"d"}"#,
            "Invalid spec.selector",
        ),
        (
            "",
            r#"spec.selector={"matchLabels":{"c":"d"}}"#,
            "Invalid spec.selector, Invalid spec.template.metadata.labels",
        ),
    ]);
    daemon()
        .reported(&[
            ("", r#"status={"currentNumberScheduled":1,"numberMisscheduled":1,"desiredNumberScheduled":3,"numberReady":1}"#, ""),
            (
                "",
                r#"status={"currentNumberScheduled":-1,"numberMisscheduled":-1,"desiredNumberScheduled":-3,"numberReady":-1,"observedGeneration":-3,"updatedNumberScheduled":-1,"numberAvailable":-1,"numberUnavailable":-2}"#,
                "Invalid status.currentNumberScheduled, Invalid status.numberMisscheduled, Invalid status.desiredNumberScheduled, Invalid status.numberReady, Invalid status.observedGeneration, Invalid status.updatedNumberScheduled, Invalid status.numberAvailable, Invalid status.numberUnavailable",
            ),
            (r#"status={"collisionCount":2}"#, r#"status={"collisionCount":1}"#, "Invalid status.collisionCount"),
        ]);
}
