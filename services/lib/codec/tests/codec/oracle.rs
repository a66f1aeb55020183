//! Compares JSON with that of the `k8s-openapi` crate.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use k8s_openapi::api::{apps, coordination, core};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_codec::kinds;

fn assert_same<T: Serialize + DeserializeOwned>(resource: &str, document: &Value) {
    let kind = kinds().by_resource(resource).unwrap();
    let object = kind.from_json(document.to_string().as_bytes()).unwrap();
    let ours: Value = serde_json::from_slice(&object.to_json()).unwrap();
    let theirs: T = serde_json::from_value(ours.clone()).unwrap();
    assert_eq!(
        serde_json::to_value(theirs).unwrap(),
        without_nulls(ours),
        "{resource}"
    );
}

/// Removes nulls: Kubernetes and Setpoint write unset times as null, `k8s-openapi` omits them.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [{
                "name": "web", "image": "nginx:1.25", "command": ["nginx", "-g"], "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
                    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                ],
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "readinessProbe": {"tcpSocket": {"port": 80}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
            "volumes": [
                {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "c", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
                {"name": "p", "projected": {"sources": [{"secret": {"name": "s"}}]}},
            ],
            "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 3}],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}},
            ]}},
        },
    })
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name, "namespace": "production", "uid": "u", "resourceVersion": "12", "generation": 2,
        "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"app": "web"}, "finalizers": ["a/b"],
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": true}],
        "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}],
    })
}

#[test]
fn pods_and_nodes_round_trip_through_k8s_openapi() {
    let mut pod = template();
    pod["metadata"] = metadata("web-0");
    pod["status"] = json!({
        "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "startTime": "2026-01-02T03:04:05Z",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}],
        "containerStatuses": [{"name": "web", "image": "i", "imageID": "", "ready": true, "restartCount": 1,
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}}, "lastState": {"terminated": {"exitCode": 137}}}],
    });
    assert_same::<core::v1::Pod>("pods", &pod);
    let node = json!({
        "metadata": metadata("n1"),
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi"}, "addresses": [{"type": "Hostname", "address": "n1"}],
            "nodeInfo": {"kubeletVersion": "v1"}, "images": [{"names": ["nginx"], "sizeBytes": 5}]},
    });
    assert_same::<core::v1::Node>("nodes", &node);
}

#[test]
fn deployments_and_replica_sets_round_trip_through_k8s_openapi() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let deployment = json!({
        "metadata": metadata("web"),
        "spec": {"replicas": 3, "selector": selector, "template": template(),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}},
        "status": {"observedGeneration": 2, "replicas": 3, "conditions": [{"type": "Available", "status": "True"}]},
    });
    assert_same::<apps::v1::Deployment>("deployments.apps", &deployment);
    let replica_set = json!({
        "metadata": metadata("web-1"),
        "spec": {"replicas": 0, "selector": selector, "template": template()},
        "status": {"replicas": 0, "readyReplicas": 2},
    });
    assert_same::<apps::v1::ReplicaSet>("replicasets.apps", &replica_set);
}

#[test]
fn leases_and_events_round_trip_through_k8s_openapi() {
    let lease = json!({
        "metadata": metadata("scheduler"),
        "spec": {"holderIdentity": "scheduler-0_x", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-01-02T03:04:05.000006Z", "renewTime": "2026-01-02T03:04:05.123456Z"},
    });
    assert_same::<coordination::v1::Lease>("leases.coordination.k8s.io", &lease);
    let event = json!({
        "metadata": metadata("web.1"), "reason": "Scheduled", "message": "done", "type": "Normal", "count": 2,
        "involvedObject": {"kind": "Pod", "name": "web-0", "fieldPath": "spec.containers{web}"},
        "source": {"component": "scheduler"}, "firstTimestamp": "2026-01-02T03:04:05Z",
        "eventTime": "2026-01-02T03:04:05.000000Z", "reportingComponent": "scheduler",
    });
    assert_same::<core::v1::Event>("events", &event);
}

#[test]
fn other_core_kinds_round_trip_through_k8s_openapi() {
    let metadata = metadata("x");
    let configmap = json!({"metadata": metadata, "data": {"a": "b"}, "binaryData": {"c": "AAEC"}, "immutable": true});
    assert_same::<core::v1::ConfigMap>("configmaps", &configmap);
    let secret = json!({"metadata": metadata, "data": {"a": "AAEC"}, "stringData": {"c": "d"}, "type": "Opaque"});
    assert_same::<core::v1::Secret>("secrets", &secret);
    let namespace = json!({"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    assert_same::<core::v1::Namespace>("namespaces", &namespace);
    let account = json!({"metadata": metadata, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]});
    assert_same::<core::v1::ServiceAccount>("serviceaccounts", &account);
    let service = json!({
        "metadata": metadata,
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}, {"name": "b", "port": 81, "targetPort": 8081}],
            "clusterIP": "None", "clusterIPs": ["None"], "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
    });
    assert_same::<core::v1::Service>("services", &service);
}

#[test]
fn empty_objects_round_trip_through_k8s_openapi() {
    assert_same::<core::v1::Pod>("pods", &json!({}));
    assert_same::<core::v1::Node>("nodes", &json!({}));
    assert_same::<core::v1::Service>("services", &json!({}));
    assert_same::<core::v1::Secret>("secrets", &json!({}));
    assert_same::<coordination::v1::Lease>("leases.coordination.k8s.io", &json!({}));
}
