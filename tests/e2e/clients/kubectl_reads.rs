//! The commands of kubectl that read.

use setpoint_tests::{Cluster, Kubectl};

use super::folded;

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, labels: {app: web}}\ndata: {a: b}\n";

#[test]
fn kubectl_discovers_and_explains_every_kind() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    api_resources_lists_names_and_verbs(&kubectl);
    explain_shows_fields_of_both_schemas(&kubectl);
    every_kind_is_explained_listed_and_described(&kubectl);
    let versions = kubectl.ok("api-versions");
    for version in [
        "v1",
        "apps/v1",
        "autoscaling/v1",
        "autoscaling/v2",
        "events.k8s.io/v1",
    ] {
        assert!(versions.lines().any(|line| line == version), "{versions}");
    }
    assert!(kubectl.ok("cluster-info").contains("control plane"));
    assert!(kubectl.ok("version").contains("Server Version: v1."));
}

fn api_resources_lists_names_and_verbs(kubectl: &Kubectl) {
    let table = folded(&kubectl.ok("api-resources -o wide --sort-by=name"));
    let deployments = "deployments deploy apps/v1 true Deployment create,delete,deletecollection,get,list,patch,update,watch all";
    assert!(table.iter().any(|line| line == deployments), "{table:#?}");
    let cluster_scoped = kubectl.ok("api-resources --namespaced=false -o name");
    assert!(cluster_scoped.lines().any(|name| name == "nodes"));
    assert!(!cluster_scoped.lines().any(|name| name == "pods"));
}

fn explain_shows_fields_of_both_schemas(kubectl: &Kubectl) {
    let text = kubectl.ok("explain deployment.spec.strategy");
    for line in [
        "GROUP:      apps",
        "FIELD: strategy <DeploymentStrategy>",
        "  rollingUpdate",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let text = kubectl.ok("explain pods --recursive");
    assert!(
        text.contains("terminationGracePeriodSeconds\t<integer>"),
        "{text}"
    );
    let text = kubectl.ok("explain hpa --api-version=autoscaling/v1");
    assert!(text.contains("VERSION:    v1"), "{text}");
    for output in ["plaintext", "plaintext-openapiv2"] {
        let text = kubectl.ok(&format!(
            "explain deployment.spec.strategy.type --output={output}"
        ));
        let words: Vec<_> = text.split_whitespace().collect();
        let described = words
            .join(" ")
            .contains("`Recreate` deletes all old Pods before it creates new ones.");
        assert!(described, "{text}");
    }
}

/// Every kind that can be listed has a table and a schema.
fn every_kind_is_explained_listed_and_described(kubectl: &Kubectl) {
    let listed = kubectl.ok("api-resources --verbs=list -o name");
    assert!(listed.lines().count() > 50, "{listed}");
    for name in listed.lines() {
        kubectl.ok(&format!("get {name} --all-namespaces -o wide"));
        kubectl.ok(&format!("get {name} --all-namespaces -o name"));
        // kubectl takes the second dot of events.events.k8s.io for a path of fields.
        let name = name.split_once('.').map_or(name, |(plural, _)| plural);
        let text = kubectl.ok(&format!("explain {name}"));
        // kubectl writes this in place of a description that is missing.
        let lacks_text = ["<empty>", "<no description>"]
            .iter()
            .any(|none| text.contains(none));
        assert!(text.contains("KIND:") && !lacks_text, "{text}");
    }
    for name in ["node", "namespace", "priorityclass", "clusterrole"] {
        kubectl.ok(&format!("describe {name}"));
    }
}

#[test]
fn kubectl_get_has_all_output_forms() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    assert!(kubectl.with("apply", CONFIG_MAP).success);
    let shown = |form: &str| kubectl.ok(&format!("get configmap one {form}"));
    assert_eq!(shown("-o name"), "configmap/one\n");
    assert!(shown("-o yaml").starts_with("apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\n"));
    assert!(shown("-o json").contains("\"a\": \"b\""));
    assert_eq!(shown("-o jsonpath={.data.a}"), "b");
    assert_eq!(shown("-o go-template={{.data.a}}"), "b");
    assert_eq!(
        folded(&shown("-o custom-columns=N:.metadata.name,A:.data.a")),
        ["N A", "one b"]
    );
    assert_eq!(folded(&shown("--show-labels"))[0], "NAME DATA AGE LABELS");
    assert_eq!(folded(&shown("-L app"))[0], "NAME DATA AGE APP");
    assert!(shown("--show-managed-fields -o yaml").contains("managedFields"));
    assert!(!shown("-o yaml").contains("managedFields"));
    let raw = kubectl.ok("get --raw /api/v1/namespaces/default/configmaps/one");
    assert!(raw.contains(r#""data":{"a":"b"}"#), "{raw}");
    for path in [
        "/healthz",
        "/livez",
        "/readyz?verbose",
        "/version",
        "/openapi/v2",
        "/openapi/v3",
        "/apis",
    ] {
        assert!(!kubectl.ok(&format!("get --raw {path}")).is_empty());
    }
    let chunks = kubectl.ok("get namespaces --chunk-size=1 --no-headers");
    assert!(chunks.lines().count() >= 4, "{chunks}");
    let sorted = kubectl.ok("get namespaces --sort-by=.metadata.name --no-headers");
    assert!(sorted.lines().is_sorted(), "{sorted}");
    let selected =
        kubectl.ok("get configmaps -l app=web --field-selector metadata.name=one -o name");
    assert_eq!(selected, "configmap/one\n");
}

#[test]
fn kubectl_answers_questions_about_permissions_and_identity() {
    let mut cluster = Cluster::bare();
    cluster.start_housekeeping();
    let kubectl = cluster.kubectl();
    assert_eq!(kubectl.ok("auth can-i create deployments"), "yes\n");
    assert!(kubectl.ok("auth can-i --list").contains("*.*"));
    assert!(kubectl.ok("auth whoami").contains("Username"));
    kubectl.ok("wait --for=create serviceaccount/default --timeout=60s");
    let token = kubectl.ok("create token default --duration=1h");
    assert_eq!(token.trim().split('.').count(), 3, "{token}");
}
