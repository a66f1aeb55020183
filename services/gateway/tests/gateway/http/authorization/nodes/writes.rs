//! NodeRestriction: each field that a node may write, and the others.

use serde_json::{Value, json};

use super::super::super::api::Api;
use super::PODS;

const NODES: &str = "/api/v1/nodes";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A change of an object, and the end of the error.
type Case = (fn(&mut Value), &'static str);

fn named(name: &str) -> Value {
    json!({ "metadata": { "name": name } })
}

async fn mirror_of_a(api: &Api) -> Value {
    let uid = api.get(&format!("{NODES}/a")).await.ok()["metadata"]["uid"].clone();
    json!({
        "metadata": {
            "name": "static-a",
            "annotations": { "kubernetes.io/config.mirror": "hash" },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid, "controller": true }],
        },
        "spec": { "nodeName": "a", "containers": [{ "name": "web", "image": "nginx" }] },
    })
}

/// Checks V13 (CVE-2025-4563).
#[tokio::test]
async fn a_node_creates_mirror_pods_of_its_own_that_name_no_other_object() {
    let api = Api::with_nodes().await;
    let own_owner = "can only create pods with an owner reference set to itself";
    let cases: &[Case] = &[
        (
            |pod| pod["metadata"]["annotations"] = json!({}),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"a\" can only create mirror pods",
        ),
        (
            |pod| pod["spec"]["nodeName"] = "b".into(),
            "can only create pods with spec.nodeName set to itself",
        ),
        (
            |pod| pod["metadata"]["ownerReferences"] = json!([]),
            own_owner,
        ),
        (
            |pod| {
                let owner = pod["metadata"]["ownerReferences"][0].clone();
                let mut other = owner.clone();
                other["uid"] = "x".into();
                other["controller"] = false.into();
                pod["metadata"]["ownerReferences"] = json!([owner, other]);
            },
            "can only create pods with a single owner reference set to itself",
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["kind"] = "Pod".into(),
            own_owner,
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["name"] = "b".into(),
            own_owner,
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["apiVersion"] = "v2".into(),
            own_owner,
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["controller"] = false.into(),
            "can only create pods with a controller owner reference set to itself",
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = true.into(),
            "must not set blockOwnerDeletion on an owner reference",
        ),
        (
            |pod| pod["metadata"]["ownerReferences"][0]["uid"] = "x".into(),
            "node a UID mismatch: expected x got ",
        ),
        (
            |pod| pod["spec"]["serviceAccountName"] = "default".into(),
            "a mirror pod may not reference service accounts",
        ),
        (
            |pod| pod["spec"]["imagePullSecrets"] = json!([{ "name": "x" }]),
            "a mirror pod may not reference secrets",
        ),
        (
            |pod| {
                pod["spec"]["containers"][0]["envFrom"] =
                    json!([{ "configMapRef": { "name": "x" } }])
            },
            "node \"a\" can not create pods that reference configmaps",
        ),
        (
            |pod| {
                pod["spec"]["resourceClaims"] =
                    json!([{ "name": "gpu", "resourceClaimName": "gpu" }])
            },
            "node \"a\" can not create pods that reference resourceclaims",
        ),
        (
            |pod| {
                let claim = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "x" } });
                pod["spec"]["volumes"] = json!([claim]);
            },
            "node \"a\" can not create pods that reference persistentvolumeclaims",
        ),
    ];
    let mirror = mirror_of_a(&api).await;
    for (change, expected) in cases {
        let mut pod = mirror.clone();
        change(&mut pod);
        let refused = api.node_a().post(PODS, pod).await.refused(403, "Forbidden");
        assert!(refused.contains(expected), "{refused} is not {expected}");
    }
    api.node_a().post(PODS, mirror).await.ok();
}

#[tokio::test]
async fn a_node_deletes_evicts_and_reports_only_its_own_pods() {
    let api = Api::with_nodes().await;
    let (a, b) = (api.node_a(), api.node_b());
    api.pod_on_a("web", json!({})).await;
    let (pod, status) = (format!("{PODS}/web"), format!("{PODS}/web/status"));
    let running = json!({ "status": { "phase": "Running" } });
    a.merge(&status, running.clone()).await.ok();
    let refused = b.merge(&status, running).await.refused(403, "Forbidden");
    assert_eq!(
        refused,
        "pods \"web\" is forbidden: node \"b\" can only update pod status for pods with spec.nodeName set to itself"
    );
    let labels = json!({ "metadata": { "labels": { "app": "stolen" } } });
    let refused = a.merge(&status, labels).await.refused(403, "Forbidden");
    assert!(
        refused.ends_with("cannot update labels through pod status"),
        "{refused}"
    );
    let claims = json!({ "status": { "resourceClaimStatuses": [{ "name": "x", "resourceClaimName": "y" }] } });
    let refused = a.merge(&status, claims).await.refused(403, "Forbidden");
    assert!(
        refused.ends_with("cannot update resource claim statues"),
        "{refused}"
    );
    let extended = json!({ "status": { "extendedResourceClaimStatus": {
        "requestMappings": [{ "containerName": "web", "resourceName": "example.com/gpu", "requestName": "r" }],
        "resourceClaimName": "y",
    } } });
    let refused = a.merge(&status, extended).await.refused(403, "Forbidden");
    assert!(
        refused.ends_with("cannot update extended resource claim status"),
        "{refused}"
    );
    // The whole Pod is not its own to write.
    let spec = json!({ "metadata": { "labels": { "a": "b" } } });
    a.merge(&pod, spec).await.refused(403, "Forbidden");
    let eviction =
        json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "web" } });
    let evictions = format!("{pod}/eviction");
    let refused = b.post(&evictions, eviction.clone()).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.contains("node b can only evict pods with spec.nodeName set to itself"),
        "{refused}"
    );
    let refused = b.delete(&pod).await.refused(403, "Forbidden");
    assert!(
        refused.ends_with("node \"b\" can only delete pods with spec.nodeName set to itself"),
        "{refused}"
    );
    a.post(&evictions, eviction).await.ok();
    a.delete(&format!("{pod}?gracePeriodSeconds=0")).await.ok();
    api.get(&pod).await.refused(404, "NotFound");
}

/// Checks V13 (CVE-2025-5187).
#[tokio::test]
async fn a_node_writes_only_itself_and_neither_taints_owners_nor_labels_that_others_trust() {
    let api = Api::with_nodes().await;
    let a = api.node_a();
    let own = format!("{NODES}/a");
    let owner = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y" }]);
    let taint = json!([{ "key": "x", "effect": "NoSchedule" }]);
    for (patch, expected) in [
        (
            json!({ "spec": { "taints": taint } }),
            "node \"a\" is not allowed to modify taints",
        ),
        (
            json!({ "metadata": { "ownerReferences": owner } }),
            "node \"a\" is not allowed to modify ownerReferences",
        ),
        (
            json!({ "metadata": { "labels": { "node-restriction.kubernetes.io/x": "1", "k8s.io/y": "1" } } }),
            "is not allowed to modify labels: k8s.io/y, node-restriction.kubernetes.io/x",
        ),
    ] {
        let refused = a.merge(&own, patch).await.refused(403, "Forbidden");
        assert_eq!(refused, format!("nodes \"a\" is forbidden: {expected}"));
    }
    let labels = json!({ "metadata": { "labels": {
        "kubernetes.io/hostname": "a", "node.kubernetes.io/x": "1", "acme.com/y": "1",
    } } });
    a.merge(&own, labels.clone()).await.ok();
    a.merge(&own, json!({ "spec": { "unschedulable": true } }))
        .await
        .ok();
    let ready = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    a.merge(&format!("{own}/status"), ready.clone()).await.ok();
    let foreign = "nodes \"b\" is forbidden: node \"a\" is not allowed to modify node \"b\"";
    for (path, patch) in [
        (format!("{NODES}/b"), labels),
        (format!("{NODES}/b/status"), ready),
    ] {
        let refused = a.merge(&path, patch).await.refused(403, "Forbidden");
        assert_eq!(refused, foreign);
    }
    a.delete(&own).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn a_node_creates_itself_only_and_without_labels_that_others_trust() {
    let api = Api::with_nodes().await;
    let new = api.node("system:node:new");
    let refused = new
        .post(NODES, named("other"))
        .await
        .refused(403, "Forbidden");
    assert!(
        refused.ends_with("is not allowed to modify node \"other\""),
        "{refused}"
    );
    let mut node = named("new");
    node["metadata"]["labels"] = json!({ "node-role.kubernetes.io/control-plane": "" });
    let refused = new
        .post(NODES, node.clone())
        .await
        .refused(403, "Forbidden");
    assert_eq!(
        refused,
        "nodes \"new\" is forbidden: node \"new\" is not allowed to set the following labels: \
        node-role.kubernetes.io/control-plane"
    );
    node["metadata"]["labels"] = json!({ "kubernetes.io/hostname": "new" });
    node["spec"]["configSource"] = json!({ "configMap": {
        "namespace": "kube-system", "name": "x", "kubeletConfigKey": "k",
    } });
    let refused = new.post(NODES, node.clone()).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.ends_with("is not allowed to create pods with a non-nil configSource"),
        "{refused}"
    );
    node["spec"] = json!({});
    node["spec"]["taints"] = json!([{ "key": "x", "effect": "NoSchedule" }]);
    new.post(NODES, node).await.ok();
}

#[tokio::test]
async fn a_node_has_the_leases_and_csi_nodes_of_its_name() {
    let api = Api::with_nodes().await;
    api.post("/api/v1/namespaces", named("kube-node-lease"))
        .await
        .ok();
    let a = api.node_a();
    let lease =
        |name: &str| json!({ "metadata": { "name": name }, "spec": { "holderIdentity": name } });
    a.post(LEASES, lease("a")).await.ok();
    let renewed = json!({ "spec": { "leaseDurationSeconds": 40 } });
    a.merge(&format!("{LEASES}/a"), renewed.clone()).await.ok();
    let refused = a.post(LEASES, lease("b")).await.refused(403, "Forbidden");
    assert_eq!(
        refused,
        "leases.coordination.k8s.io \"b\" is forbidden: can only access node lease with the same name as the \
        requesting node"
    );
    api.node_b()
        .merge(&format!("{LEASES}/a"), renewed)
        .await
        .refused(403, "Forbidden");
    let csi = "/apis/storage.k8s.io/v1/csinodes";
    let node = |name: &str| json!({ "metadata": { "name": name }, "spec": { "drivers": [] } });
    a.post(csi, node("a")).await.ok();
    let refused = a.post(csi, node("b")).await.refused(403, "Forbidden");
    assert!(
        refused.ends_with("can only access CSINode with the same name as the requesting node"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_node_reports_the_size_of_its_claims_and_nothing_else() {
    let api = Api::with_nodes().await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({ "metadata": { "name": "data" }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    api.post(claims, claim).await.ok();
    let volume = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "data" } });
    api.pod_on_a("web", json!({ "volumes": [volume] })).await;
    let (a, status) = (api.node_a(), format!("{claims}/data/status"));
    let size = json!({ "status": { "capacity": { "storage": "1Gi" } } });
    a.merge(&status, size.clone()).await.ok();
    let phase = json!({ "status": { "phase": "Lost" } });
    let refused = a.merge(&status, phase).await.refused(403, "Forbidden");
    assert!(
        refused.contains(
            "is not allowed to update fields other than status.quantity and status.conditions"
        ),
        "{refused}"
    );
    api.node_b()
        .merge(&status, size)
        .await
        .refused(403, "Forbidden");
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    a.merge(&format!("{claims}/data"), labels)
        .await
        .refused(403, "Forbidden");
}

#[tokio::test]
async fn a_node_has_the_resource_slices_of_its_own_devices() {
    let api = Api::with_nodes().await;
    let slices = "/apis/resource.k8s.io/v1/resourceslices";
    let slice = |name: &str, node: &str| {
        json!({ "metadata": { "name": name }, "spec": {
            "driver": "d.example.com", "nodeName": node,
            "pool": { "name": node, "generation": 1, "resourceSliceCount": 1 },
        } })
    };
    let (a, b) = (api.node_a(), api.node_b());
    a.post(slices, slice("of-a", "a")).await.ok();
    let refused = a
        .post(slices, slice("of-b", "b"))
        .await
        .refused(403, "Forbidden");
    assert!(
        refused.ends_with(
            "can only create ResourceSlice with the same NodeName as the requesting node"
        ),
        "{refused}"
    );
    b.post(slices, slice("of-b", "b")).await.ok();
    let path = format!("{slices}/of-a");
    b.get(&path).await.refused(403, "Forbidden");
    b.delete(&path).await.refused(403, "Forbidden");
    let of_a = format!("{slices}?fieldSelector=spec.nodeName%3Da");
    b.delete(&of_a).await.refused(403, "Forbidden");
    a.delete(&of_a).await.ok();
    api.get(&format!("{slices}/of-b")).await.ok();
    api.get(&path).await.refused(404, "NotFound");
}

/// Checks V13: an agent releases the volumes whose directories it has.
#[tokio::test]
async fn a_node_removes_the_finalizer_of_its_own_volumes_only() {
    let api = Api::with_nodes().await;
    let volume = |name: &str, node: &str| {
        json!({
            "metadata": {
                "name": name,
                "annotations": { "setpoint.dev/node": node },
                "finalizers": ["setpoint.dev/local-path", "acme.com/hold"],
            },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "hostPath": { "path": "/data" },
            },
        })
    };
    let volumes = "/api/v1/persistentvolumes";
    api.post(volumes, volume("of-a", "a")).await.ok();
    api.post(volumes, volume("of-b", "b")).await.ok();
    let (a, own) = (api.node_a(), format!("{volumes}/of-a"));
    let released = |finalizers: &[&str]| {
        let all = [finalizers, &["kubernetes.io/pv-protection"]].concat();
        json!({ "metadata": { "finalizers": all } })
    };
    let own_one = released(&["acme.com/hold"]);
    let refused = a.merge(&format!("{volumes}/of-b"), own_one.clone()).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.ends_with("no relationship found between node 'a' and this object"),
        "{refused}"
    );
    let refused = a.merge(&own, released(&[])).await.refused(403, "Forbidden");
    assert!(
        refused.contains("can only remove the finalizer"),
        "{refused}"
    );
    let policy = json!({ "spec": { "persistentVolumeReclaimPolicy": "Delete" } });
    a.merge(&own, policy).await.refused(403, "Forbidden");
    a.merge(&own, own_one).await.ok();
}
