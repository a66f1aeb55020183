//! Tests of writes through the status subresource.

use serde_json::json;

use crate::table::Base;

fn template() -> serde_json::Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    })
}

fn set(resource: &'static str) -> Base {
    Base {
        resource,
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()},
        }),
    }
}

fn pod() -> Base {
    Base {
        resource: "pods",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "web", "image": "nginx"}, {"name": "log", "image": "nginx"}],
                "initContainers": [{"name": "proxy", "image": "nginx", "restartPolicy": "Always"}],
            },
        }),
    }
}

/// Checks F18.
#[test]
fn of_a_deployment() {
    set("deployments.apps")
        .reported(&[
            ("", "status.replicas=1 ; status.updatedReplicas=1", ""),
            ("", "status.replicas=-5", "Invalid status.replicas, Invalid status.updatedReplicas, Invalid status.readyReplicas, Invalid status.availableReplicas"),
            ("", "status.observedGeneration=-1", "Invalid status.observedGeneration"),
            ("", "status.updatedReplicas=1", "Invalid status.updatedReplicas"),
            ("", "status.updatedReplicas=-1", "Invalid status.updatedReplicas"),
            ("", "status.replicas=2 ; status.readyReplicas=3", "Invalid status.readyReplicas"),
            ("", "status.replicas=2 ; status.availableReplicas=1", "Invalid status.availableReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=3 ; status.availableReplicas=3", ""),
            ("", "status.unavailableReplicas=-1", "Invalid status.unavailableReplicas"),
            ("", "status.terminatingReplicas=-1", "Invalid status.terminatingReplicas"),
            ("", "status.collisionCount=-3", "Invalid status.collisionCount"),
            ("", "status.observedGeneration=2 ; status.replicas=3 ; status.updatedReplicas=3 ; status.readyReplicas=2 ; status.availableReplicas=1 ; status.terminatingReplicas=5", ""),
            ("", "status.replicas=3 ; status.updatedReplicas=4 ; status.readyReplicas=3 ; status.availableReplicas=3", "Invalid status.updatedReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=-1 ; status.availableReplicas=1", "Invalid status.readyReplicas, Invalid status.availableReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=3 ; status.availableReplicas=-1", "Invalid status.availableReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=3 ; status.availableReplicas=4", "Invalid status.availableReplicas, Invalid status.availableReplicas"),
            ("", r#"metadata.finalizers=["orphan","foregroundDeletion"]"#, "Invalid metadata.finalizers"),
            ("status.collisionCount=3", "status.collisionCount=4", ""),
            ("status.collisionCount=3", "status.collisionCount=2", "Invalid status.collisionCount"),
            ("status.collisionCount=3", "status.collisionCount=null", "Invalid status.collisionCount"),
            ("", r#"metadata.annotations={"not a key!!":""}"#, "Invalid metadata.annotations"),
        ]);
}

/// Checks F18.
#[test]
fn of_a_replica_set() {
    set("replicasets.apps")
        .reported(&[
            ("", "status.replicas=1 ; status.fullyLabeledReplicas=1", ""),
            ("", "status.observedGeneration=2 ; status.replicas=3 ; status.fullyLabeledReplicas=3 ; status.readyReplicas=2 ; status.availableReplicas=1 ; status.terminatingReplicas=5", ""),
            ("", "status.replicas=-3", "Invalid status.replicas, Invalid status.fullyLabeledReplicas, Invalid status.readyReplicas, Invalid status.availableReplicas"),
            ("", "status.replicas=3 ; status.fullyLabeledReplicas=-1", "Invalid status.fullyLabeledReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=3 ; status.availableReplicas=-1", "Invalid status.availableReplicas"),
            ("", "status.replicas=3 ; status.readyReplicas=2 ; status.availableReplicas=3", "Invalid status.availableReplicas"),
            (
                "",
                "status.replicas=1 ; status.fullyLabeledReplicas=2",
                "Invalid status.fullyLabeledReplicas",
            ),
            (
                "",
                "status.replicas=1 ; status.readyReplicas=2",
                "Invalid status.readyReplicas",
            ),
            (
                "",
                "status.replicas=1 ; status.availableReplicas=1",
                "Invalid status.availableReplicas",
            ),
            (
                "",
                "status.readyReplicas=-1",
                "Invalid status.readyReplicas, Invalid status.availableReplicas",
            ),
            (
                "",
                "status.observedGeneration=-1",
                "Invalid status.observedGeneration",
            ),
            (
                "",
                "status.terminatingReplicas=-1",
                "Invalid status.terminatingReplicas",
            ),
        ]);
}

/// Checks F18.
#[test]
fn of_a_pod() {
    let ended = r#"status.containerStatuses=[{"name":"web","state":{"terminated":{"exitCode":1}}},{"name":"log","state":{"running":{}}}]"#;
    pod()
        .reported(&[
            ("", r#"status.phase="Running""#, ""),
            (r#"status.phase="Failed""#, r#"status.phase="Running""#, "Invalid status.phase"),
            (r#"status.phase="Succeeded""#, r#"status.phase="Failed""#, "Invalid status.phase"),
            (r#"status.phase="Running""#, r#"status.phase="Succeeded""#, ""),
            ("", r#"status.conditions=[{"type":"Ready","status":"True"},{"type":"a.io/b","status":"True"}]"#, ""),
            ("", r#"status.conditions=[{"type":"not this!","status":"True"}]"#, "Invalid status.conditions[0].Type"),
            ("", r#"status.conditions=[{"type":"Ready","observedGeneration":-1}]"#, "Invalid status.conditions[0].observedGeneration"),
            ("", "status.observedGeneration=-1", "Invalid status.observedGeneration"),
            ("", r#"status.qosClass="Guaranteed""#, "Invalid status.qosClass"),
            ("", r#"status.qosClass="""#, ""),
            ("", r#"status.nominatedNodeName="node-1""#, ""),
            ("", r#"status.nominatedNodeName="Node_1""#, "Invalid status.nominatedNodeName"),
            ("", r#"status.podIPs=[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]"#, ""),
            ("", r#"status.podIPs=[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]"#, "Invalid status.podIPs"),
            ("", r#"status.podIPs=[{"ip":"10.0.0"}]"#, "Invalid status.podIPs[0]"),
            ("", r#"status.podIPs=[{"ip":"010.0.0.1"}]"#, "Invalid status.podIPs[0]"),
            ("", r#"status.hostIP="10.0.0.1" ; status.hostIPs=[{"ip":"10.0.0.1"}]"#, ""),
            ("", r#"status.hostIPs=[{"ip":"10.0.0.1"}]"#, "Invalid status.hostIPs[0].ip"),
            (ended, r#"status.containerStatuses[0].state={"running":{}}"#, "Forbidden status.containerStatuses[0].state"),
            (ended, r#"status.containerStatuses[1].state={"terminated":{"exitCode":0}}"#, ""),
            (ended, "status.containerStatuses=[]", ""),
            (
                r#"status.initContainerStatuses=[{"name":"proxy","state":{"terminated":{"exitCode":0}}}]"#,
                r#"status.initContainerStatuses[0].state={"running":{}}"#,
                "",
            ),
            (
                "",
                r#"status.containerStatuses=[{"name":"web","user":{"linux":{"uid":-1,"gid":1,"supplementalGroups":[-2]}}}]"#,
                "Invalid status.containerStatuses[0].user.linux.uid, Invalid status.containerStatuses[0].user.linux.supplementalGroups[0]",
            ),
            ("", r#"metadata.labels={"a":"b c"}"#, "Invalid metadata.labels"),
        ]);
}

/// Checks F18.
#[test]
fn of_a_namespace() {
    let namespace = Base {
        resource: "namespaces",
        object: json!({"metadata": {"name": "staging"}}),
    };
    namespace.reported(&[
        (
            "",
            r#"status.conditions=[{"type":"a","status":"True"}]"#,
            "",
        ),
        ("", r#"status.phase="Terminating""#, "Invalid status.Phase"),
        (
            "",
            r#"status.phase="Terminating" ; metadata.deletionTimestamp="1970-01-01T00:16:40Z""#,
            "Invalid metadata.deletionTimestamp",
        ),
        (
            "",
            r#"status.phase="Terminating" ; metadata.name="bar""#,
            "BadRequest",
        ),
        (
            "",
            r#"metadata.annotations={"a b":""}"#,
            "Invalid metadata.annotations",
        ),
    ]);
}

/// Checks F18.
#[test]
fn of_a_service() {
    let service = Base {
        resource: "services",
        object: json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}),
    };
    service.reported(&[
        (
            "",
            r#"status.conditions=[{"type":"a","status":"True"}]"#,
            "",
        ),
        (
            "",
            r#"status.loadBalancer.ingress=[{"ip":"1.2.3.4"}]"#,
            "Forbidden status.loadBalancer.ingress",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ip":"1.2.3.4"}]"#,
            "",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ip":"1.2.3.4","ipMode":"Proxy"}]"#,
            "",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ipMode":"Proxy"}]"#,
            "Forbidden status.loadBalancer.ingress[0].ipMode",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ip":"001.002.003.004"}]"#,
            "Invalid status.loadBalancer.ingress[0].ip",
        ),
        (
            r#"spec.type="LoadBalancer" ; status.loadBalancer.ingress=[{"ip":"1.2.3.4"}]"#,
            r#"status.loadBalancer.ingress[1]={"ip":"5.6.7.8"}"#,
            "",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"hostname":"001.002.003.004"}]"#,
            "Invalid status.loadBalancer.ingress[0].hostname",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ip":"1.2.3"}]"#,
            "Invalid status.loadBalancer.ingress[0].ip",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"ip":"1.2.3.4","ipMode":"x"}]"#,
            "NotSupported status.loadBalancer.ingress[0].ipMode",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"hostname":"a.b","ipMode":"VIP"}]"#,
            "Forbidden status.loadBalancer.ingress[0].ipMode",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"hostname":"a.b"}]"#,
            "",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"hostname":"a b"}]"#,
            "Invalid status.loadBalancer.ingress[0].hostname",
        ),
        (
            r#"spec.type="LoadBalancer""#,
            r#"status.loadBalancer.ingress=[{"hostname":"1.2.3.4"}]"#,
            "Invalid status.loadBalancer.ingress[0].hostname",
        ),
        (
            "",
            r#"metadata.labels={"a":"b c"}"#,
            "Invalid metadata.labels",
        ),
    ]);
}

/// Checks F18.
#[test]
fn of_a_node() {
    let node = Base {
        resource: "nodes",
        object: json!({"metadata": {"name": "node-1"}}),
    };
    node.reported(&[
        ("", r#"status.capacity={"cpu":"1500m","a.io/gpu":"2"}"#, ""),
        ("", r#"status.capacity={"cpu":"-1"}"#, "Invalid status.capacity.cpu"),
        ("", r#"status.allocatable={"a.io/gpu":"1500m"}"#, "Invalid status.allocatable.a.io/gpu"),
        ("", r#"status.allocatable={"pods":"1.5"}"#, "Invalid status.allocatable.pods"),
        ("", r#"status.capacity={"cpu":"10","memory":"10G","a.io/a":"5"}"#, ""),
        ("", r#"status.capacity={"a.io/a":"500m"} ; status.allocatable={"a.io/a":"4.5"}"#, "Invalid status.capacity.a.io/a, Invalid status.allocatable.a.io/a"),
        ("", r#"status.nodeInfo.swap={"capacity":0}"#, ""),
        ("", r#"status.declaredFeatures=["B","A"]"#, "Invalid status.declaredFeatures[1]"),
        ("", r#"metadata.annotations={"scheduler.alpha.kubernetes.io/preferAvoidPods":"{\"preferAvoidPods\":[{}]}"}"#, "Required metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature"),
        ("", r#"status.config={"error":"a"}"#, ""),
        (r#"status.addresses=[{"type":"ExternalIP","address":"1.2.3.4"}]"#, "status.addresses=[]", ""),
        (
            "",
            r#"status.addresses=[{"type":"InternalIP","address":"1.2.3.4"},{"type":"ExternalIP","address":"1.2.3.4"}]"#,
            "",
        ),
        (
            "",
            r#"status.addresses=[{"type":"InternalIP","address":"1.2.3.4"},{"type":"InternalIP","address":"1.2.3.4"}]"#,
            "Duplicate status.addresses[1]",
        ),
        ("", r#"metadata.labels={"a":"b c"}"#, "Invalid metadata.labels"),
        ("", r#"metadata.labels={"a":"b"}"#, ""),
    ]);
}
