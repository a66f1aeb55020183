//! Changes of the level of a namespace with Pods.

use serde_json::json;

use super::{ENFORCE, NAMESPACES, PODS, pod, restricted};
use crate::http::api::Api;

#[tokio::test]
async fn a_user_learns_which_pods_violate_a_new_level() {
    let api = Api::start().await;
    for name in ["c", "a", "b"] {
        api.post(PODS, pod(name)).await.ok();
    }
    api.post(PODS, restricted("good")).await.ok();
    let mut host = pod("host");
    host["spec"]["hostPID"] = true.into();
    api.post(PODS, host).await.ok();
    let head = |level: &str| {
        format!(
            "existing pods in namespace \"default\" violate the new PodSecurity enforce level \"{level}\""
        )
    };
    let lacks = "allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile";
    api.get(PODS).await.ok();
    let dry_run = format!("{NAMESPACES}/default?dryRun=All");
    let patch = json!({ "metadata": { "labels": { ENFORCE: "restricted" } } });
    let tried = api.patch(&dry_run, "merge-patch+json", patch).await;
    let expected = [
        head("restricted:latest"),
        format!("a (and 2 other pods): {lacks}"),
        format!("host: host namespaces, {lacks}"),
    ];
    assert_eq!(tried.warnings(), expected);
    let labelled = api.label(json!({ ENFORCE: "baseline" })).await;
    let expected = [head("baseline:latest"), "host: host namespaces".to_owned()];
    assert_eq!(labelled.warnings(), expected);
    let stricter = api.label(json!({ ENFORCE: "restricted" })).await;
    assert_eq!(stricter.warnings().len(), 3);
}

#[tokio::test]
async fn a_level_that_allows_more_or_the_same_needs_no_look_at_pods() {
    let api = Api::labelled(json!({ ENFORCE: "restricted" })).await;
    let mut host = pod("host");
    host["spec"]["hostPID"] = true.into();
    api.label(json!({ ENFORCE: null })).await.ok();
    api.post(PODS, host).await.ok();
    api.label(json!({ ENFORCE: "restricted" })).await.ok();
    for labels in [
        json!({ "other": "label" }),
        json!({ "pod-security.kubernetes.io/audit": "restricted" }),
        json!({ ENFORCE: "baseline" }),
        json!({ ENFORCE: "privileged" }),
    ] {
        assert_eq!(
            api.label(labels.clone()).await.warnings(),
            [""; 0],
            "{labels}"
        );
    }
    let version = "pod-security.kubernetes.io/enforce-version";
    let older = api
        .label(json!({ ENFORCE: "baseline", version: "v1.20" }))
        .await;
    assert_eq!(older.warnings().len(), 2);
}
