//! A node reads what its Pods name, and nothing else.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::super::api::{Api, Reply};
use super::PODS;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

async fn create_all(api: &Api, collection: &str, names: &[&str]) {
    for name in names {
        let object = json!({ "metadata": { "name": name } });
        api.post(collection, object).await.ok();
    }
}

/// Asserts that a node may read an object that others may not.
async fn read_by_a_only(api: &Api, path: &str) {
    api.node_a().get(path).await.ok();
    let refused = api.node_b().get(path).await.refused(403, "Forbidden");
    let reason = "no relationship found between node 'b' and this object";
    assert!(refused.ends_with(reason), "{path}: {refused}");
}

#[tokio::test]
async fn a_node_reads_the_secrets_and_config_maps_of_its_pods() {
    let api = Api::with_nodes().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    create_all(&api, SECRETS, &["volume", "variable", "other"]).await;
    create_all(&api, maps, &["volume", "other"]).await;
    let variables = json!([{ "secretRef": { "name": "variable" } }]);
    let spec = json!({
        "volumes": [
            { "name": "s", "secret": { "secretName": "volume" } },
            { "name": "c", "configMap": { "name": "volume" } },
        ],
        "initContainers": [{ "name": "init", "image": "nginx", "envFrom": variables }],
    });
    api.pod_on_a("web", spec).await;
    for path in [
        format!("{SECRETS}/volume"),
        format!("{SECRETS}/variable"),
        format!("{SECRETS}?fieldSelector=metadata.name%3Dvolume"),
        format!("{maps}/volume"),
    ] {
        read_by_a_only(&api, &path).await;
    }
    let a = api.node_a();
    let refused = a.get(&format!("{SECRETS}/other")).await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "secrets \"other\" is forbidden: User \"system:node:a\" cannot get resource \"secrets\" in API group \"\" in \
        the namespace \"default\": no relationship found between node 'a' and this object"
    );
    let all = a.get(SECRETS).await.refused(403, "Forbidden");
    assert!(all.ends_with(": No Object name found"), "{all}");
    a.get(&format!("{maps}/other"))
        .await
        .refused(403, "Forbidden");
    let elsewhere = "/api/v1/namespaces/kube-system/secrets/volume";
    a.get(elsewhere).await.refused(403, "Forbidden");
    let written = a.put(&format!("{SECRETS}/volume"), json!({})).await;
    let written = written.refused(403, "Forbidden");
    assert!(
        written.ends_with(": can only read resources of this type"),
        "{written}"
    );
    api.delete(&format!("{PODS}/web?gracePeriodSeconds=0"))
        .await
        .ok();
    // It was allowed before, so that the gateway does not wait for its cache.
    while a.get(&format!("{SECRETS}/volume")).await.code == 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_node_reads_the_claims_of_its_pods_with_their_volumes_and_the_secrets_of_these() {
    let api = Api::with_nodes().await;
    create_all(&api, SECRETS, &["mount", "attach"]).await;
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let storage = json!({ "storage": "1Gi" });
    for name in ["data", "web-scratch", "other"] {
        let secret = |name: &str| json!({ "name": name, "namespace": "default" });
        let volume = json!({ "metadata": { "name": name }, "spec": {
            "capacity": storage, "accessModes": ["ReadWriteOnce"],
            "claimRef": { "namespace": "default", "name": name },
            "csi": {
                "driver": "d", "volumeHandle": name,
                "nodePublishSecretRef": secret(if name == "data" { "mount" } else { "unused" }),
                "controllerPublishSecretRef": secret("attach"),
            },
        } });
        api.post("/api/v1/persistentvolumes", volume).await.ok();
        let claim = json!({ "metadata": { "name": name }, "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": name, "storageClassName": "",
            "resources": { "requests": storage },
        } });
        api.post(claims, claim).await.ok();
    }
    let template = json!({ "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": storage },
    } });
    let spec = json!({ "volumes": [
        { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
        { "name": "scratch", "ephemeral": { "volumeClaimTemplate": template } },
    ] });
    api.pod_on_a("web", spec).await;
    for path in [
        format!("{claims}/data"),
        format!("{claims}/web-scratch"),
        "/api/v1/persistentvolumes/data".into(),
        "/api/v1/persistentvolumes/web-scratch".into(),
        format!("{SECRETS}/mount"),
    ] {
        read_by_a_only(&api, &path).await;
    }
    let a = api.node_a();
    for path in [
        format!("{claims}/other"),
        claims.to_owned(),
        "/api/v1/persistentvolumes/other".into(),
        "/api/v1/persistentvolumes".into(),
        format!("{SECRETS}/attach"),
    ] {
        a.get(&path).await.refused(403, "Forbidden");
    }
}

/// As its agent removes the directories of volumes that are being deleted, unless a claim needs them again.
#[tokio::test]
async fn a_node_reads_the_volumes_whose_directories_it_has_and_their_claims() {
    let api = Api::with_nodes().await;
    let volumes = "/api/v1/persistentvolumes";
    for (name, node) in [("of-a", "a"), ("of-b", "b")] {
        let mark = json!({ "setpoint.dev/node": node });
        let volume = json!({
            "metadata": { "name": name, "annotations": mark, "labels": mark },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "hostPath": { "path": "/data" },
                "claimRef": { "namespace": "default", "name": format!("claim-{node}") },
            },
        });
        api.post(volumes, volume).await.ok();
    }
    read_by_a_only(&api, &format!("{volumes}/of-a")).await;
    let a = api.node_a();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    // The node learns that the claim is gone.
    a.get(&format!("{claims}/claim-a"))
        .await
        .refused(404, "NotFound");
    a.get(&format!("{claims}/claim-b"))
        .await
        .refused(403, "Forbidden");
    let listed = a
        .get(&format!("{volumes}?labelSelector=setpoint.dev%2Fnode%3Da"))
        .await
        .ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    for selector in [
        "",
        "?labelSelector=setpoint.dev%2Fnode%3Db",
        "?labelSelector=setpoint.dev%2Fnode",
        "?labelSelector=setpoint.dev%2Fnode+in+(a,b)",
        "?watch=true&labelSelector=x%3Da",
    ] {
        let refused = a.get(&format!("{volumes}{selector}")).await;
        let refused = refused.refused(403, "Forbidden");
        let reason = "can only get individual resources of this type";
        assert!(refused.ends_with(reason), "{refused}");
    }
}

#[tokio::test]
async fn a_node_reads_its_own_pods_and_itself() {
    let api = Api::with_nodes().await;
    api.pod_on_a("web", json!({})).await;
    read_by_a_only(&api, &format!("{PODS}/web")).await;
    let selected = "/api/v1/pods?fieldSelector=spec.nodeName%3Da";
    let names = |reply: Reply| reply.ok()["items"].as_array().unwrap().len();
    assert_eq!(names(api.node_a().get(selected).await), 1);
    let refused = api.node_b().get(selected).await.refused(403, "Forbidden");
    let reason = "can only list/watch pods with spec.nodeName field selector";
    assert!(refused.ends_with(reason), "{refused}");
    api.node_a()
        .get("/api/v1/pods")
        .await
        .refused(403, "Forbidden");
    api.node_a().get("/api/v1/nodes/a").await.ok();
    let other = api.node_b().get("/api/v1/nodes/a").await;
    let other = other.refused(403, "Forbidden");
    let reason = "node 'b' cannot read 'a', only its own Node object";
    assert!(other.ends_with(reason), "{other}");
}

/// Checks V13: a mirror Pod, which a node creates itself, gives it no rights.
#[tokio::test]
async fn a_mirror_pod_gives_its_node_nothing() {
    let api = Api::with_nodes().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    create_all(&api, maps, &["mine"]).await;
    let mirror = json!({
        "metadata": { "name": "static-a", "annotations": { "kubernetes.io/config.mirror": "x" } },
        "spec": {
            "nodeName": "a",
            "containers": [{ "name": "web", "image": "nginx" }],
            "volumes": [{ "name": "c", "configMap": { "name": "mine" } }],
        },
    });
    // The administrator may create it, whatever it names.
    api.post(PODS, mirror).await.ok();
    let refused = api.node_a().get(&format!("{maps}/mine")).await;
    let refused = refused.refused(403, "Forbidden");
    let reason = "no relationship found between node 'a' and this object";
    assert!(refused.ends_with(reason), "{refused}");
    api.node_a().get(&format!("{PODS}/static-a")).await.ok();
}

#[tokio::test]
async fn a_review_answers_as_the_node_authorizer_decides() {
    let api = Api::with_nodes().await;
    let review = async |attributes: Value| {
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let spec = json!({
            "user": "system:node:a", "groups": ["system:nodes"], "resourceAttributes": attributes,
        });
        api.post(path, json!({ "spec": spec })).await.ok()["status"].clone()
    };
    let selector = |operator: &str, values: Value| {
        let requirement = json!({ "key": "spec.nodeName", "operator": operator, "values": values });
        json!({ "verb": "list", "resource": "pods", "fieldSelector": { "requirements": [requirement] } })
    };
    assert_eq!(review(selector("In", json!(["a"]))).await["allowed"], true);
    let volumes = |label_selector: Value| json!({ "verb": "watch", "resource": "persistentvolumes", "labelSelector": label_selector });
    let of = |operator: &str, values: Value| {
        let requirement =
            json!({ "key": "setpoint.dev/node", "operator": operator, "values": values });
        volumes(json!({ "requirements": [requirement] }))
    };
    for (asked, expected) in [
        (of("In", json!(["a"])), true),
        (of("In", json!(["b"])), false),
        (of("Exists", json!([])), false),
        (
            volumes(json!({ "rawSelector": "setpoint.dev/node=a" })),
            true,
        ),
        (
            volumes(json!({ "rawSelector": "setpoint.dev/node=" })),
            false,
        ),
    ] {
        assert_eq!(review(asked.clone()).await["allowed"], expected, "{asked}");
    }
    let raw = json!({ "rawSelector": "spec.nodeName=a" });
    let raw = json!({ "verb": "watch", "resource": "pods", "fieldSelector": raw });
    assert_eq!(review(raw).await["allowed"], true);
    for other in [
        selector("In", json!(["b"])),
        selector("In", json!(["a", "b"])),
        selector("NotIn", json!(["a"])),
    ] {
        let status = review(other).await;
        assert_eq!(status["allowed"], false);
        let reason = "can only list/watch pods with spec.nodeName field selector";
        assert_eq!(status["reason"], reason);
    }
    let rules = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let body = json!({ "spec": { "namespace": "default" } });
    let refused = api.node_a().post(rules, body).await;
    // Rules are a right of the role `system:basic-user`, which this cluster has not got.
    refused.refused(403, "Forbidden");
}
