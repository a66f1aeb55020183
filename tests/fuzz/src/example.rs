//! Valid objects of each stored kind.

use serde_json::{Value, json};
use setpoint_codec::{Kind, kinds};

/// Returns the kind with this number and the JSON of an object.
pub fn example(number: u8) -> (&'static Kind, Value) {
    let count = kinds().iter().count();
    let kind = kinds().iter().nth(usize::from(number) % count);
    let kind = kind.expect("the number is below the count");
    (kind, document(kind, "web"))
}

/// Returns the JSON of a valid object of this kind and name.
pub fn document(kind: &Kind, name: &str) -> Value {
    let mut document = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": { "name": name, "labels": { "app": "web", "tier": "5" } },
    });
    if let Some(required) = required_name(kind, name) {
        document["metadata"]["name"] = required.into();
    }
    let specific = specific(kind);
    for (key, value) in specific.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    document
}

/// Returns the name that an object must have because of its other fields.
fn required_name(kind: &Kind, name: &str) -> Option<String> {
    match kind.kind.as_str() {
        "IPAddress" => {
            let last = name.as_bytes().first().copied().unwrap_or_default();
            Some(format!("10.0.0.{last}"))
        }
        "CustomResourceDefinition" => Some("sites.example.com".to_owned()),
        "APIService" => Some("v1.example.com".to_owned()),
        _ => None,
    }
}

fn specific(kind: &Kind) -> Value {
    match kind.kind.as_str() {
        "ConfigMap" => json!({ "data": { "a": "b" } }),
        "Secret" => json!({ "type": "Opaque", "data": { "a": "Yg==" } }),
        "Pod" => json!({ "spec": pod_spec() }),
        "Node" => json!({ "spec": { "taints": [{ "key": "a", "effect": "NoSchedule" }] } }),
        "Service" => json!({ "spec": {
            "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP" }],
        } }),
        "Lease" => json!({ "spec": { "holderIdentity": "a", "leaseDurationSeconds": 15 } }),
        "Event" => json!({
            "involvedObject": { "kind": "Pod", "namespace": "default", "name": "web" },
            "reason": "Seen", "message": "it was seen", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
        }),
        "ReplicationController" => json!({ "spec": {
            "replicas": 2,
            "selector": { "app": "web" },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec() },
        } }),
        "StatefulSet" => json!({ "spec": {
            "serviceName": "web",
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec() },
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": { "requests": { "storage": "1Gi" } },
            } }],
        } }),
        "Job" => json!({ "spec": { "template": job_template() } }),
        "CronJob" => json!({ "spec": {
            "schedule": "*/5 * * * *",
            "timeZone": "Etc/UTC",
            "jobTemplate": { "spec": { "template": job_template() } },
        } }),
        "PodDisruptionBudget" => json!({ "spec": {
            "minAvailable": "50%",
            "selector": { "matchLabels": { "app": "web" } },
        } }),
        "HorizontalPodAutoscaler" => json!({ "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 1,
            "maxReplicas": 5,
        } }),
        "DaemonSet" => json!({ "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec() },
        } }),
        "ReplicaSet" | "Deployment" => json!({ "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": pod_spec() },
        } }),
        "PodTemplate" => json!({ "template": {
            "metadata": { "labels": { "app": "web" } }, "spec": pod_spec(),
        } }),
        "ControllerRevision" => json!({ "revision": 1, "data": { "a": "b" } }),
        "PriorityClass" => json!({ "value": 100 }),
        "Role" | "ClusterRole" => json!({ "rules": [{
            "verbs": ["get"], "apiGroups": [""], "resources": ["pods"],
        }] }),
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": { "kind": "ClusterRole", "name": "web" },
            "subjects": [{ "kind": "User", "name": "web" }],
        }),
        "ResourceQuota" => json!({ "spec": {
            "hard": { "pods": "100", "requests.cpu": "100", "count/secrets": "100" },
            "scopes": ["NotTerminating"],
        } }),
        "LimitRange" => json!({ "spec": { "limits": [{
            "type": "Container",
            "max": { "cpu": "8" },
            "default": { "cpu": "1" },
            "defaultRequest": { "cpu": "100m" },
        }] } }),
        "Endpoints" => json!({ "subsets": [{
            "addresses": [{ "ip": "10.0.0.1" }], "ports": [{ "name": "http", "port": 80 }],
        }] }),
        "EndpointSlice" => json!({
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["10.0.0.1"] }],
            "ports": [{ "name": "http", "port": 80 }],
        }),
        _ => storage(kind).unwrap_or_else(|| network(kind)),
    }
}

/// Returns the specific fields of the kinds of storage.
fn storage(kind: &Kind) -> Option<Value> {
    Some(match kind.kind.as_str() {
        "PersistentVolume" => json!({ "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteOnce"],
            "hostPath": { "path": "/data" },
        } }),
        "PersistentVolumeClaim" => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        } }),
        "StorageClass" => json!({ "provisioner": "example.com/disk", "parameters": { "a": "b" } }),
        "VolumeAttributesClass" => {
            json!({ "driverName": "example.com", "parameters": { "a": "b" } })
        }
        "CSIDriver" => json!({ "spec": { "attachRequired": false } }),
        "CSINode" => json!({ "spec": { "drivers": [{
            "name": "example.com", "nodeID": "web", "topologyKeys": ["zone"],
        }] } }),
        "CSIStorageCapacity" => json!({ "storageClassName": "web", "capacity": "1Gi" }),
        "VolumeAttachment" => json!({ "spec": {
            "attacher": "example.com", "nodeName": "web", "source": { "persistentVolumeName": "web" },
        } }),
        _ => return None,
    })
}

/// Returns the specific fields of the kinds of networks and runtimes.
fn network(kind: &Kind) -> Value {
    match kind.kind.as_str() {
        "Ingress" => json!({ "spec": { "rules": [{ "host": "example.com", "http": { "paths": [{
            "path": "/",
            "pathType": "Prefix",
            "backend": { "service": { "name": "web", "port": { "number": 80 } } },
        }] } }] } }),
        "IngressClass" => json!({ "spec": { "controller": "example.com/web" } }),
        "NetworkPolicy" => json!({ "spec": {
            "podSelector": {},
            "ingress": [{ "ports": [{ "port": 80 }], "from": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }] }],
        } }),
        "IPAddress" => {
            json!({ "spec": { "parentRef": { "resource": "services", "name": "web" } } })
        }
        "ServiceCIDR" => json!({ "spec": { "cidrs": ["10.0.0.0/8"] } }),
        "RuntimeClass" => json!({
            "handler": "runc",
            "overhead": { "podFixed": { "cpu": "100m" } },
            "scheduling": { "nodeSelector": { "disk": "ssd" } },
        }),
        _ => devices(kind),
    }
}

/// Returns the specific fields of the kinds of devices.
fn devices(kind: &Kind) -> Value {
    let claim = json!({ "devices": { "requests": [{
        "name": "gpu",
        "exactly": {
            "deviceClassName": "web",
            "selectors": [{ "cel": { "expression": "device.driver == 'example.com'" } }],
        },
    }] } });
    match kind.kind.as_str() {
        "DeviceClass" => json!({ "spec": { "selectors": [{ "cel": { "expression": "true" } }] } }),
        "ResourceClaim" => json!({ "spec": claim }),
        "ResourceClaimTemplate" => json!({ "spec": { "spec": claim } }),
        "ResourceSlice" => json!({ "spec": {
            "driver": "example.com",
            "pool": { "name": "web", "generation": 1, "resourceSliceCount": 1 },
            "nodeName": "web",
            "devices": [{
                "name": "gpu-0",
                "attributes": { "model": { "string": "a" } },
                "capacity": { "memory": { "value": "1Gi" } },
            }],
        } }),
        _ => control(kind),
    }
}

/// Returns the specific fields of the kinds of certificates, flow control, admission and extensions.
fn control(kind: &Kind) -> Value {
    match kind.kind.as_str() {
        "CertificateSigningRequest" => json!({ "spec": {
            "request": CERTIFICATE_REQUEST,
            "signerName": "example.com/web", "usages": ["client auth"],
        } }),
        "FlowSchema" => json!({ "spec": {
            "priorityLevelConfiguration": { "name": "web" },
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": "web" } }],
                "nonResourceRules": [{ "verbs": ["get"], "nonResourceURLs": ["/web/*"] }],
            }],
        } }),
        "PriorityLevelConfiguration" => json!({ "spec": {
            "type": "Limited", "limited": { "limitResponse": { "type": "Queue", "queuing": {} } },
        } }),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => json!({ "webhooks": [{
            "name": "web.example.com", "clientConfig": { "url": "https://example.com/web" },
            "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [admission_rule()],
        }] }),
        "ValidatingAdmissionPolicy" => json!({ "spec": {
            "matchConstraints": { "resourceRules": [admission_rule()] },
            "validations": [{ "expression": "true" }],
        } }),
        "MutatingAdmissionPolicy" => json!({ "spec": {
            "matchConstraints": { "resourceRules": [admission_rule()] },
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": "[JSONPatch{op: 'test', path: '/kind'}]" } }],
            "reinvocationPolicy": "Never",
        } }),
        "ValidatingAdmissionPolicyBinding" => json!({ "spec": {
            "policyName": "web", "validationActions": ["Deny"],
        } }),
        "MutatingAdmissionPolicyBinding" => json!({ "spec": { "policyName": "web" } }),
        "CustomResourceDefinition" => json!({ "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "sites", "kind": "Site" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "size": { "type": "integer", "default": 1 } },
                    "x-kubernetes-validations": [{ "rule": "self.size > 0" }],
                },
            } }],
        } }),
        "APIService" => json!({ "spec": {
            "group": "example.com", "version": "v1",
            "groupPriorityMinimum": 1000, "versionPriority": 100,
        } }),
        _ => json!({}),
    }
}

fn job_template() -> Value {
    let mut spec = pod_spec();
    spec["restartPolicy"] = "Never".into();
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": spec })
}

/// A request for a certificate in PEM, as base64.
const CERTIFICATE_REQUEST: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWk1JR0FBZ0VBTUI0eERUQUxCZ05WQkFvTUJHRmpiV1V4RFRB\
    TEJnTlZCQU1NQkdwaGJtVXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVQxejVOcjdsZmRCVERzTVZab290R2l4\
    VWN3KzRoeFFKT1l3TEVZCjZzOWU3S3R5clcwdVBqaXE1VG1aK05YUXlPQ3hOTngyRjFPT1cvSzR4WXJlaXAvQm9BQXdDZ1lJS29a\
    SXpqMEUKQXdJRFNBQXdSUUloQU9obEMwZGZmYVhrNDdrYXNMVWJjSmwxbTRzdElieWo3VEdvd1J3TEZydEhBaUErNlhHMQptOVBz\
    RFJQMUpObTRqS3pia29uT0hjdFJXSjhuRHZYcjcxWm9vZz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

fn admission_rule() -> Value {
    json!({ "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"] })
}

fn pod_spec() -> Value {
    json!({
        "containers": [{
            "name": "web",
            "image": "nginx:1.25",
            "ports": [{ "name": "http", "containerPort": 80 }],
            "env": [{ "name": "A", "value": "b" }],
            "resources": { "requests": { "cpu": "100m" }, "limits": { "memory": "1Gi" } },
            "volumeMounts": [{ "name": "scratch", "mountPath": "/scratch" }],
            "readinessProbe": { "httpGet": { "path": "/", "port": "http" } },
        }],
        "volumes": [{ "name": "scratch", "emptyDir": {} }],
        "tolerations": [{ "key": "a", "operator": "Exists" }],
        "nodeSelector": { "disk": "ssd" },
    })
}
