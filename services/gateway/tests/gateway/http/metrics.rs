//! metrics.k8s.io: kinds that are computed at each read.

use serde_json::json;

use crate::http::api::Api;

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";

async fn with_node() -> Api {
    let api = Api::start().await;
    let labels = json!({ "zone": "a" });
    let node = json!({ "metadata": { "name": "n", "labels": labels } });
    api.post("/api/v1/nodes", node).await.ok();
    api
}

#[tokio::test]
async fn discovery_lists_kinds_that_can_only_be_read() {
    let api = with_node().await;
    let found = api.get("/apis/metrics.k8s.io/v1beta1").await.ok();
    for (place, name, kind) in [(0, "nodes", "NodeMetrics"), (1, "pods", "PodMetrics")] {
        let resource = &found["resources"][place];
        assert_eq!(resource["name"], name);
        assert_eq!(resource["kind"], kind);
        assert_eq!(resource["verbs"], json!(["get", "list"]));
    }
}

#[tokio::test]
async fn a_node_without_measured_pods_uses_nothing() {
    let api = with_node().await;
    let list = api.get(NODES).await.ok();
    assert_eq!(list["kind"], "NodeMetricsList");
    assert_eq!(list["apiVersion"], "metrics.k8s.io/v1beta1");
    let node = api.get(&format!("{NODES}/n")).await.ok();
    assert_eq!(node["usage"], json!({ "cpu": "0", "memory": "0" }));
    assert_eq!(node["window"], "0s");
    assert_eq!(node["metadata"]["labels"]["zone"], "a");
    assert_eq!(node["metadata"]["resourceVersion"], json!(null));
    let selected = api.get(&format!("{NODES}?labelSelector=zone%3Db")).await;
    assert_eq!(selected.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_pod_that_is_not_measured_has_no_metrics() {
    let api = with_node().await;
    assert_eq!(api.get(PODS).await.ok()["items"], json!([]));
    let missing = api.get(&format!("{PODS}/web")).await;
    let message = missing.refused(404, "NotFound");
    assert_eq!(message, "pods.metrics.k8s.io \"web\" not found");
}

#[tokio::test]
async fn computed_objects_cannot_be_written_or_watched() {
    let api = with_node().await;
    let node = format!("{NODES}/n");
    for reply in [
        api.post(NODES, json!({ "metadata": { "name": "m" } }))
            .await,
        api.put(&node, json!({ "metadata": { "name": "n" } })).await,
        api.delete(&node).await,
        api.delete(NODES).await,
        api.get(&format!("{NODES}?watch=true")).await,
    ] {
        reply.refused(405, "MethodNotAllowed");
    }
}
