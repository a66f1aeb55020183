//! The rules about what containers name and use hold for each list of containers.

use serde_json::{Value, json};

use super::api::{Api, Reply};

const PODS: &str = "/api/v1/namespaces/default/pods";
const LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// The fields of a container by which it names Secrets and ConfigMaps.
const REFERENCES: [Reference; 4] = [
    (
        "secrets",
        |name| json!({ "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": name, "key": "k" } } }] }),
    ),
    (
        "secrets",
        |name| json!({ "envFrom": [{ "secretRef": { "name": name } }] }),
    ),
    (
        "configmaps",
        |name| json!({ "env": [{ "name": "A", "valueFrom": { "configMapKeyRef": { "name": name, "key": "k" } } }] }),
    ),
    (
        "configmaps",
        |name| json!({ "envFrom": [{ "configMapRef": { "name": name } }] }),
    ),
];

/// A resource, and the fields of a container that name an object of it.
type Reference = (&'static str, fn(&str) -> Value);

/// Returns a container with further fields.
fn container(name: &str, fields: Value) -> Value {
    super::admission::merged(json!({ "name": name, "image": "i" }), fields)
}

/// Creates a Pod with a further container in a list. An ephemeral one is added to a Pod that exists.
async fn create(api: &Api, name: &str, mut pod: Value, list: &str, fields: Value) -> Reply {
    pod["metadata"]["name"] = name.into();
    let own = container("own", json!({}));
    pod["spec"]["containers"] = json!([own]);
    let further = json!([container("further", fields)]);
    match list {
        "containers" => pod["spec"]["containers"] = json!([own, further[0]]),
        "initContainers" => pod["spec"]["initContainers"] = further,
        _ => {
            api.post(PODS, pod).await.ok();
            let body = json!({ "spec": { list: further } });
            let path = format!("{PODS}/{name}/ephemeralcontainers");
            return api.patch(&path, "strategic-merge-patch+json", body).await;
        }
    }
    api.post(PODS, pod).await
}

/// Checks V12 (CVE-2023-2728, CVE-2024-3177): the plugin ServiceAccount.
#[tokio::test]
async fn an_account_limits_the_secrets_of_every_list_of_containers() {
    let api = Api::start().await;
    let account = json!({
        "metadata": {
            "name": "limited", "annotations": { "kubernetes.io/enforce-mountable-secrets": "true" },
        },
        "secrets": [{ "name": "known" }],
    });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, account).await.ok();
    let pod = json!({ "metadata": {}, "spec": { "serviceAccountName": "limited" } });
    for (at, (resource, fields)) in REFERENCES.into_iter().enumerate() {
        for list in LISTS {
            let name = |of: &str| format!("{of}-{at}-{}", list.to_lowercase());
            let other = create(&api, &name("other"), pod.clone(), list, fields("other")).await;
            match resource {
                "secrets" => {
                    let refused = other.refused(403, "Forbidden");
                    let why = "service account limited does not reference that secret";
                    assert!(refused.ends_with(why), "{list}: {refused}");
                }
                _ => drop(other.ok()),
            }
            create(&api, &name("known"), pod.clone(), list, fields("known"))
                .await
                .ok();
        }
    }
}

/// Checks V12 and V13 (CVE-2025-4563): the plugin NodeRestriction. A mirror Pod has no ephemeral containers.
#[tokio::test]
async fn a_mirror_pod_names_nothing_in_any_list_of_containers() {
    let api = Api::with_nodes().await;
    let uid = api.get("/api/v1/nodes/a").await.ok()["metadata"]["uid"].clone();
    let owner =
        json!({ "apiVersion": "v1", "kind": "Node", "name": "a", "uid": uid, "controller": true });
    let mirror = |list: &str, fields: Value| {
        let further = json!([container("further", fields)]);
        let mut spec = json!({ "nodeName": "a", "containers": [container("own", json!({}))] });
        spec[list] = further;
        json!({
            "metadata": {
                "name": "mirror", "ownerReferences": [owner],
                "annotations": { "kubernetes.io/config.mirror": "x" },
            },
            "spec": spec,
        })
    };
    let a = api.node_a();
    for (resource, fields) in REFERENCES {
        for list in &LISTS[..2] {
            let refused = a.post(PODS, mirror(list, fields("x"))).await;
            let refused = refused.refused(403, "Forbidden");
            assert!(refused.contains(resource), "{list}: {refused}");
        }
    }
    a.post(PODS, mirror("initContainers", json!({}))).await.ok();
    let added = json!({ "spec": { "ephemeralContainers": [container("further", json!({}))] } });
    let path = format!("{PODS}/mirror/ephemeralcontainers");
    let merge = "application/strategic-merge-patch+json";
    let added = a.send("PATCH", &path, merge, added).await;
    added.refused(403, "Forbidden");
}

/// Checks V12: the node authorizer, by which a node reads what its containers name, and nothing more.
#[tokio::test]
async fn a_node_reads_what_any_list_of_containers_names() {
    let api = Api::with_nodes().await;
    let pod = json!({ "metadata": {}, "spec": { "nodeName": "a" } });
    for (at, (resource, fields)) in REFERENCES.into_iter().enumerate() {
        for list in LISTS {
            let name = format!("{}-{at}", list.to_lowercase());
            let objects = format!("/api/v1/namespaces/default/{resource}");
            let object = json!({ "metadata": { "name": name } });
            api.post(&objects, object).await.ok();
            let path = format!("{objects}/{name}");
            let node = api.node_a();
            node.get(&path).await.refused(403, "Forbidden");
            create(&api, &name, pod.clone(), list, fields(&name))
                .await
                .ok();
            node.get(&path).await.ok();
            api.node_b().get(&path).await.refused(403, "Forbidden");
        }
    }
}

/// Checks V12: the plugin LimitRanger. Ephemeral containers have no resources.
#[tokio::test]
async fn limits_hold_for_every_list_of_containers_with_resources() {
    let api = Api::start().await;
    let range = json!({
        "metadata": { "name": "r" },
        "spec": { "limits": [{ "type": "Container", "max": { "cpu": "1" } }] },
    });
    let ranges = "/api/v1/namespaces/default/limitranges";
    api.post(ranges, range).await.ok();
    api.get(&format!("{ranges}/r")).await.ok();
    let uses = |cpu: &str| json!({ "resources": { "limits": { "cpu": cpu } } });
    let pod = json!({ "metadata": {}, "spec": {} });
    for list in &LISTS[..2] {
        let name = |of: &str| format!("{of}-{}", list.to_lowercase());
        let refused = create(&api, &name("large"), pod.clone(), list, uses("2")).await;
        let refused = refused.refused(403, "Forbidden");
        assert!(
            refused.contains("maximum cpu usage per Container is 1"),
            "{list}: {refused}"
        );
        create(&api, &name("small"), pod.clone(), list, uses("1"))
            .await
            .ok();
    }
}
