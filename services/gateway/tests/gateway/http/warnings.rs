//! The warnings about writes. Their texts are tested with the kinds.

use serde_json::{Value, json};

use super::api::{Api, CONFIGMAPS, DEPLOYMENTS, deployment};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const REPEATED: &str = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: 1";
const OLD_LABEL: &str = r#"spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#;

/// Returns a Deployment that is warned of.
fn unusual(name: &str) -> Value {
    let mut object = deployment(name);
    object["spec"]["template"]["spec"]["nodeSelector"] =
        json!({ "beta.kubernetes.io/os": "linux" });
    object
}

fn web() -> String {
    format!("{DEPLOYMENTS}/web")
}

#[tokio::test]
async fn every_way_to_write_an_object_has_warnings() {
    let api = Api::start().await;
    let dry = format!("{DEPLOYMENTS}?dryRun=All");
    assert_eq!(api.post(&dry, unusual("web")).await.warnings(), [OLD_LABEL]);
    let created = api.post(DEPLOYMENTS, unusual("web")).await;
    assert_eq!(created.warnings(), [OLD_LABEL]);
    let mut changed = created.ok();
    changed["spec"]["replicas"] = 4.into();
    let updated = api.put(&web(), changed).await;
    assert_eq!(updated.warnings(), [OLD_LABEL]);
    let merged = json!({ "spec": { "replicas": 5 } });
    let merged = api.patch(&web(), "merge-patch+json", merged).await;
    assert_eq!(merged.warnings(), [OLD_LABEL]);
    let scale = format!("{}/scale", web());
    let scaled = json!({ "spec": { "replicas": 6 } });
    let scaled = api.patch(&scale, "merge-patch+json", scaled).await;
    assert_eq!(scaled.warnings(), [OLD_LABEL]);
    let url = format!("{}?fieldManager=one&force=true", web());
    let applied = api.patch(&url, "apply-patch+yaml", unusual("web")).await;
    assert_eq!(applied.warnings(), [OLD_LABEL], "{applied:?}");
    let url = format!("{DEPLOYMENTS}/other?fieldManager=one&dryRun=All");
    let applied = api.patch(&url, "apply-patch+yaml", unusual("other")).await;
    assert_eq!(applied.warnings(), [OLD_LABEL]);
}

#[tokio::test]
async fn writes_that_leave_the_template_have_none() {
    let api = Api::start().await;
    let created = api.post(DEPLOYMENTS, unusual("web")).await.ok();
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    let labelled = api.patch(&web(), "merge-patch+json", labelled).await;
    assert_eq!(labelled.warnings(), [""; 0]);
    let mut reported = created;
    reported["metadata"]["resourceVersion"] = Value::Null;
    reported["status"]["observedGeneration"] = 1.into();
    let status = format!("{}/status", web());
    assert_eq!(api.put(&status, reported).await.warnings(), [""; 0]);
    assert_eq!(api.get(&web()).await.warnings(), [""; 0]);
}

#[tokio::test]
async fn an_error_after_the_validation_has_the_warnings() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, unusual("web")).await.ok();
    let again = api.post(DEPLOYMENTS, unusual("web")).await;
    again.refused(409, "AlreadyExists");
    assert_eq!(again.warnings(), [OLD_LABEL]);
    let mut invalid = unusual("other");
    invalid["spec"]["replicas"] = (-1).into();
    let invalid = api.post(DEPLOYMENTS, invalid).await;
    invalid.refused(422, "Invalid");
    assert_eq!(invalid.warnings(), [""; 0]);
}

#[tokio::test]
async fn owners_that_are_listed_twice_are_removed() {
    let api = Api::start().await;
    let owner = |name: &str| json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": "1" });
    let all = json!([owner("a"), owner("a"), owner("b")]);
    let once = json!([owner("a"), owner("b")]);
    let mut object = json!({ "metadata": { "name": "a", "ownerReferences": all } });
    let created = api.post(CONFIGMAPS, object.clone()).await;
    assert_eq!(created.ok()["metadata"]["ownerReferences"], once);
    assert_eq!(created.warnings(), [REPEATED]);
    object["data"] = json!({ "a": "b" });
    let path = format!("{CONFIGMAPS}/a");
    let updated = api.put(&path, object).await;
    assert_eq!(updated.ok()["metadata"]["ownerReferences"], once);
    assert_eq!(updated.warnings(), [REPEATED]);
    let patch = json!([{ "op": "replace", "path": "/metadata/ownerReferences", "value": all }]);
    let patched = api.patch(&path, "json-patch+json", patch).await;
    assert_eq!(patched.ok()["metadata"]["ownerReferences"], once);
    assert_eq!(patched.warnings(), [REPEATED]);
}

/// The deprecation of the version is the first one, as upstream.
#[tokio::test]
async fn endpoints_are_deprecated() {
    const DEPRECATED: &str =
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";
    let api = Api::start().await;
    let created = json!({ "metadata": { "name": "a" } });
    let created = api.post(ENDPOINTS, created).await;
    assert_eq!(created.warnings(), [DEPRECATED]);
    assert_eq!(api.get(ENDPOINTS).await.warnings(), [DEPRECATED]);
    let addresses = json!([{ "addresses": [{ "ip": "2001:DB8::1" }], "ports": [{ "port": 80 }] }]);
    let other = json!({ "metadata": { "name": "b" }, "subsets": addresses });
    let warnings = api.post(ENDPOINTS, other).await.warnings();
    assert_eq!(
        (warnings.len(), &warnings[0][..]),
        (2, DEPRECATED),
        "{warnings:?}"
    );
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    assert_eq!(api.get(slices).await.warnings(), [""; 0]);
}

#[tokio::test]
async fn a_deletion_warns_of_pods_that_it_leaves() {
    const LEFT: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
    let api = Api::start().await;
    for name in ["a", "b"] {
        let containers = json!([{ "name": "web", "image": "nginx" }]);
        let template = json!({ "spec": { "containers": containers, "restartPolicy": "Never" } });
        let job = json!({ "metadata": { "name": name }, "spec": { "template": template } });
        api.post(JOBS, job).await.ok();
    }
    let url = format!("{JOBS}/a?propagationPolicy=Background");
    assert_eq!(api.delete(&url).await.warnings(), [""; 0]);
    assert_eq!(api.delete(&format!("{JOBS}/b")).await.warnings(), [LEFT]);
    assert_eq!(api.delete(JOBS).await.warnings(), [LEFT]);
    let url = format!("{JOBS}?propagationPolicy=Orphan");
    assert_eq!(api.delete(&url).await.warnings(), [""; 0]);
}

/// The list of duplicates is as long as all texts together may be.
#[tokio::test]
async fn many_warnings_are_shortened() {
    let api = Api::start().await;
    let mut object = deployment("web");
    let name = "A".repeat(300);
    let variables: Vec<_> = (0..1000).map(|_| json!({ "name": name })).collect();
    object["spec"]["template"]["spec"]["containers"][0]["env"] = variables.into();
    let created = api.post(DEPLOYMENTS, object).await;
    created.ok();
    let warnings = created.warnings();
    assert_eq!(warnings.len(), 16);
    for (index, warning) in (1..).zip(&warnings) {
        let start = format!("spec.template.spec.containers[0].env[{index}]: hides previous");
        assert!(warning.starts_with(&start), "{warning}");
        assert_eq!(warning.len(), 256);
    }
}
