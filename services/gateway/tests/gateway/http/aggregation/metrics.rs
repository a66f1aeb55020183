//! The APIService of resource metrics, which add-ons bring where the gateway has none.

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::json;

use super::SERVICES;
use crate::http::api::Api;

const METRICS: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.metrics.k8s.io";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

/// Checks RF8: an add-on's is applied without a conflict, metrics of the gateway are served until its server is, and
/// after it.
#[tokio::test]
async fn an_add_on_takes_over_resource_metrics_without_a_conflict_and_a_gap() {
    let api = Api::start().await;
    let _background = api.run_background();
    let own = api.eventually(METRICS, |reply| reply.code == 200).await;
    let own = own.json();
    let owned = &own["metadata"]["managedFields"][0];
    assert_eq!(owned["manager"], "gateway");
    assert_eq!(owned["fieldsV1"].get("f:spec"), None, "{owned}");
    let config = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": { "name": "v1beta1.metrics.k8s.io" },
        "spec": {
            "group": "metrics.k8s.io", "version": "v1beta1",
            "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
            "service": { "name": "metrics-server", "namespace": "kube-system" },
        },
    });
    let request = Request::patch(format!("{METRICS}?fieldManager=kubectl"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml");
    let applied = api.send(request, config.to_string()).await;
    let warning = applied.headers["warning"].to_str().unwrap().to_owned();
    assert!(
        warning.contains("the gateway has these metrics itself"),
        "{warning}"
    );
    assert_eq!(applied.ok()["spec"], {
        let mut spec = config["spec"].clone();
        spec["service"]["port"] = json!(443);
        spec
    });
    let is_served = async || {
        api.get(PODS).await.ok();
        let group = api.get("/apis/metrics.k8s.io/v1beta1").await.ok();
        assert_eq!(group["resources"].as_array().unwrap().len(), 2);
    };
    is_served().await;
    let refused = |reply: &crate::http::api::Reply| {
        reply.json()["status"]["conditions"][0]["reason"] == "ServiceNotFound"
    };
    api.eventually(METRICS, refused).await;
    is_served().await;
    api.delete(METRICS).await.ok();
    let is_local = |reply: &crate::http::api::Reply| {
        reply.code == 200 && reply.json()["spec"].get("service").is_none()
    };
    api.eventually(METRICS, is_local).await;
    is_served().await;
    api.get(SERVICES).await.ok();
}
