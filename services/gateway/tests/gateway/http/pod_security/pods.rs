//! Pods in a namespace that enforces a level.

use serde_json::json;

use super::{ENFORCE, LACKS, NAMESPACES, PODS, WARN, metrics, pod, restricted};
use crate::http::api::Api;

#[tokio::test]
async fn a_pod_must_keep_to_the_level_of_its_namespace() {
    let api = Api::labelled(json!({ ENFORCE: "restricted" })).await;
    let refused = api.post(PODS, pod("web")).await;
    let text = refused.refused(403, "Forbidden");
    let expected =
        format!("pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": {LACKS}");
    assert_eq!(text, expected);
    // As upstream, what is refused is not warned about, too.
    assert_eq!(refused.warnings(), [""; 0]);
    let mut allowed = restricted("web");
    // Its default is a type that the level allows.
    allowed["spec"]["volumes"] = json!([{ "name": "cache" }]);
    let allowed = api.post(PODS, allowed).await;
    allowed.ok();
    assert_eq!(allowed.warnings(), [""; 0]);
}

#[tokio::test]
async fn a_user_is_warned_of_a_pod_that_violates_another_level() {
    let version = "pod-security.kubernetes.io/warn-version";
    let labels = json!({ ENFORCE: "baseline", WARN: "restricted", version: "v1.7" });
    let api = Api::labelled(labels).await;
    let created = api.post(PODS, pod("web")).await;
    created.ok();
    let warning = "would violate PodSecurity \"restricted:v1.7\": runAsNonRoot != true (pod or container \"web\" must \
        set securityContext.runAsNonRoot=true)";
    assert_eq!(created.warnings(), [warning]);
    let mut host = pod("host");
    host["spec"]["hostNetwork"] = true.into();
    let refused = api.post(PODS, host).await.refused(403, "Forbidden");
    let why = "violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    assert_eq!(refused, format!("pods \"host\" is forbidden: {why}"));
}

/// Checks V12: containers of each list are checked.
#[tokio::test]
async fn no_list_of_containers_is_forgotten() {
    let api = Api::labelled(json!({ ENFORCE: "baseline" })).await;
    let privileged =
        json!({ "name": "more", "image": "nginx", "securityContext": { "privileged": true } });
    for list in ["containers", "initContainers"] {
        let mut pod = pod(&list.to_lowercase());
        let containers = pod["spec"][list].as_array().cloned().unwrap_or_default();
        let with = [containers, vec![privileged.clone()]].concat();
        pod["spec"][list] = with.into();
        let refused = api.post(PODS, pod).await.refused(403, "Forbidden");
        let why = "privileged (container \"more\" must not set securityContext.privileged=true)";
        assert!(refused.ends_with(why), "{refused}");
    }
    let mut running = api.post(PODS, pod("web")).await.ok();
    running["spec"]["ephemeralContainers"] = json!([privileged]);
    let path = format!("{PODS}/web/ephemeralcontainers");
    let refused = api
        .put(&path, running.clone())
        .await
        .refused(403, "Forbidden");
    assert!(
        refused.contains("container \"more\" must not set"),
        "{refused}"
    );
    running["spec"]["ephemeralContainers"][0]["securityContext"] = json!({});
    api.put(&path, running).await.ok();
}

/// Otherwise the labels and finalizers of a Pod of an earlier policy could not be changed.
#[tokio::test]
async fn an_update_is_evaluated_if_it_changes_an_image() {
    let api = Api::start().await;
    api.post(PODS, pod("web")).await.ok();
    api.label(json!({ ENFORCE: "restricted" })).await.ok();
    let path = format!("{PODS}/web");
    let patch = async |patch| api.patch(&path, "strategic-merge-patch+json", patch).await;
    let labelled =
        patch(json!({ "metadata": { "labels": { "a": "b" }, "annotations": { "c": "d" } } })).await;
    labelled.ok();
    assert_eq!(labelled.warnings(), [""; 0]);
    let shorter = patch(json!({ "spec": { "activeDeadlineSeconds": 60 } })).await;
    shorter.ok();
    let status = format!("{path}/status");
    let phase = json!({ "status": { "phase": "Running" } });
    api.patch(&status, "merge-patch+json", phase).await.ok();
    let image = json!({ "spec": { "containers": [{ "name": "web", "image": "other" }] } });
    let refused = patch(image).await.refused(403, "Forbidden");
    assert!(
        refused.contains("violates PodSecurity \"restricted:latest\""),
        "{refused}"
    );
    api.delete(&path).await.ok();
}

#[tokio::test]
async fn invalid_labels_are_refused() {
    let api = Api::start().await;
    let refused = api
        .label(json!({ ENFORCE: "strict" }))
        .await
        .refused(422, "Invalid");
    let expected = "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: \
        Invalid value: \"strict\": must be one of privileged, baseline, restricted";
    assert_eq!(refused, expected);
    let created = api
        .post(
            NAMESPACES,
            json!({ "metadata": { "name": "shop", "labels": { ENFORCE: "" } } }),
        )
        .await;
    let refused = created.refused(422, "Invalid");
    assert!(
        refused.starts_with("Namespace \"shop\" is invalid: metadata.labels["),
        "{refused}"
    );
}

#[tokio::test]
async fn evaluations_are_counted() {
    let api = Api::labelled(
        json!({ ENFORCE: "baseline", "pod-security.kubernetes.io/enforce-version": "v1.99" }),
    )
    .await;
    let mut host = pod("host");
    host["spec"]["hostPID"] = true.into();
    api.post(PODS, host).await.refused(403, "Forbidden");
    let text = metrics();
    let line = "pod_security_evaluations_total{decision=\"deny\",mode=\"enforce\",policy_level=\"baseline\",\
        policy_version=\"future\",request_operation=\"create\",resource=\"pod\",subresource=\"\"}";
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn a_resize_of_a_pod_that_was_admitted_before_is_not_evaluated() {
    let api = Api::start().await;
    let mut host = pod("host");
    host["spec"]["hostNetwork"] = true.into();
    host["spec"]["containers"][0]["resources"] = json!({ "requests": { "cpu": "1" } });
    api.post(PODS, host).await.ok();
    api.label(json!({ ENFORCE: "restricted" })).await.ok();
    let resources = json!({ "requests": { "cpu": "2" } });
    let resize = json!({ "spec": { "containers": [{ "name": "web", "resources": resources }] } });
    let path = format!("{PODS}/host/resize");
    let resized = api.patch(&path, "strategic-merge-patch+json", resize).await;
    resized.ok();
    assert!(resized.warnings().is_empty());
}
