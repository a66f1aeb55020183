//! Templates of workloads: their users are warned, and nothing is refused.

use serde_json::{Value, json};

use super::{ENFORCE, LACKS, WARN, pod};
use crate::http::api::{Api, DEPLOYMENTS, deployment};

/// Each kind with a template, its collection, and its spec around a template.
fn workloads() -> Vec<(&'static str, Value)> {
    let labels = json!({ "app": "web" });
    let template = json!({ "metadata": { "labels": labels }, "spec": pod("")["spec"] });
    let selected = json!({ "selector": { "matchLabels": labels }, "template": template });
    let mut to_end = template.clone();
    to_end["spec"]["restartPolicy"] = "Never".into();
    let job = json!({ "template": to_end });
    let cron_job = json!({ "schedule": "* * * * *", "jobTemplate": { "spec": job } });
    let controller = json!({ "selector": labels, "template": template });
    let mut stateful = selected.clone();
    stateful["serviceName"] = "web".into();
    vec![
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({ "spec": selected }),
        ),
        (
            "/apis/apps/v1/namespaces/default/replicasets",
            json!({ "spec": selected }),
        ),
        (
            "/apis/apps/v1/namespaces/default/daemonsets",
            json!({ "spec": selected }),
        ),
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            json!({ "spec": stateful }),
        ),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({ "spec": job }),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({ "spec": cron_job }),
        ),
        (
            "/api/v1/namespaces/default/replicationcontrollers",
            json!({ "spec": controller }),
        ),
        (
            "/api/v1/namespaces/default/podtemplates",
            json!({ "template": template }),
        ),
    ]
}

#[tokio::test]
async fn users_are_warned_of_templates_of_every_kind() {
    let api = Api::labelled(json!({ ENFORCE: "restricted" })).await;
    for (path, mut object) in workloads() {
        object["metadata"] = json!({ "name": "web" });
        let created = api.post(path, object).await;
        created.ok();
        let warning = format!("would violate PodSecurity \"restricted:latest\": {LACKS}");
        assert_eq!(created.warnings(), [warning], "{path}");
    }
}

#[tokio::test]
async fn parts_of_a_workload_without_its_template_are_not_evaluated() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    api.label(json!({ WARN: "restricted" })).await.ok();
    let patched = async |part: &str, patch: Value| {
        let path = format!("{DEPLOYMENTS}/web{part}");
        let reply = api.patch(&path, "merge-patch+json", patch).await;
        reply.ok();
        reply.warnings().len()
    };
    let replicas = || json!({ "spec": { "replicas": 5 } });
    assert_eq!(patched("/scale", replicas()).await, 0);
    assert_eq!(
        patched("/status", json!({ "status": { "replicas": 1 } })).await,
        0
    );
    // As upstream, every other update of the object is.
    assert_eq!(
        patched("", json!({ "metadata": { "labels": { "a": "b" } } })).await,
        1
    );
}
