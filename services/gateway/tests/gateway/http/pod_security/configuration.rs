//! The configuration of an administrator: defaults and exemptions, and plugins that are turned off.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{AdmissionPlugins, PodSecurityConfiguration, in_process};
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use super::{ENFORCE, NAMESPACES, PODS, pod};
use crate::http::api::Api;

async fn configured(fields: Value, off: &[&str], on: &[&str]) -> Api {
    let mut document = json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
    });
    document
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let configuration = PodSecurityConfiguration::read(&document).unwrap();
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let plugins = AdmissionPlugins::new(&names(on), &names(off)).unwrap();
    let with = |registry: Registry| {
        let registry = registry.with_pod_security(configuration);
        registry.with_admission_plugins(&plugins)
    };
    let store = Arc::new(Memory::default());
    Api::over(in_process::registry_with(store, Settings::default(), with).await).await
}

#[tokio::test]
async fn namespaces_without_labels_have_the_default_level() {
    let defaults = json!({ "defaults": { "enforce": "restricted", "enforce-version": "v1.7" } });
    let api = configured(defaults, &[], &[]).await;
    let refused = api.post(PODS, pod("web")).await.refused(403, "Forbidden");
    assert!(
        refused.contains("violates PodSecurity \"restricted:v1.7\": runAsNonRoot"),
        "{refused}"
    );
    api.label(json!({ ENFORCE: "privileged" })).await.ok();
    api.post(PODS, pod("web")).await.ok();
}

#[tokio::test]
async fn exempt_users_namespaces_and_classes_may_do_anything() {
    let configuration = json!({
        "defaults": { "enforce": "restricted" },
        "exemptions": { "usernames": ["jane"], "namespaces": ["free"], "runtimeClasses": ["vm"] },
    });
    let api = configured(configuration, &[], &[]).await;
    api.post(
        "/apis/node.k8s.io/v1/runtimeclasses",
        json!({ "metadata": { "name": "vm" }, "handler": "vm" }),
    )
    .await
    .ok();
    api.post(PODS, pod("web")).await.refused(403, "Forbidden");
    api.send_as("jane", Method::POST, PODS, pod("of-jane"))
        .await
        .ok();
    api.send_as("john", Method::POST, PODS, pod("of-john"))
        .await
        .refused(403, "Forbidden");
    let mut of_class = pod("of-class");
    of_class["spec"]["runtimeClassName"] = "vm".into();
    api.post(PODS, of_class).await.ok();
    let labels = json!({ ENFORCE: "baseline", "pod-security.kubernetes.io/audit": "restricted" });
    let free = json!({ "metadata": { "name": "free", "labels": labels } });
    let created = api.post(NAMESPACES, free).await;
    created.ok();
    let warning = "namespace \"free\" is exempt from Pod Security, and the policy (enforce=baseline:latest, \
        audit=restricted:latest) will be ignored";
    assert_eq!(created.warnings(), [warning]);
    api.post(
        "/api/v1/namespaces/free/serviceaccounts",
        json!({ "metadata": { "name": "default" } }),
    )
    .await
    .ok();
    api.post("/api/v1/namespaces/free/pods", pod("web"))
        .await
        .ok();
    let line = "pod_security_exemptions_total{request_operation=\"create\",resource=\"pod\",subresource=\"\"} ";
    let text = super::metrics();
    let count = text.lines().find_map(|text| text.strip_prefix(line));
    assert_eq!(count, Some("3"), "jane, the class and the namespace");
}

#[tokio::test]
async fn pod_security_can_be_turned_off() {
    let defaults = json!({ "defaults": { "enforce": "restricted" } });
    let api = configured(defaults, &["PodSecurity"], &[]).await;
    api.label(json!({ ENFORCE: "strict" })).await.ok();
    api.post(PODS, pod("web")).await.ok();
}

/// Checks V18 (CVE-2020-8554): with the plugin, no Service gets the traffic to an address of its own choice.
#[tokio::test]
async fn external_ips_of_services_can_be_refused() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let service = |name: &str, ips: Value| {
        json!({
            "metadata": { "name": name },
            "spec": { "externalIPs": ips, "ports": [{ "port": 80 }], "clusterIP": "None" },
        })
    };
    let ips = json!(["203.0.113.7", "203.0.113.8"]);
    let store = Arc::new(Memory::default());
    let free = Api::over(in_process::registry(store.clone(), Settings::default()).await).await;
    free.post(SERVICES, service("old", ips.clone())).await.ok();
    let on = ["DenyServiceExternalIPs".to_owned()];
    let plugins = AdmissionPlugins::new(&on, &[]).unwrap();
    let with = |registry: Registry| registry.with_admission_plugins(&plugins);
    let api = Api::of(in_process::registry_with(store, Settings::default(), with).await);
    let refused = api
        .post(SERVICES, service("web", ips))
        .await
        .refused(403, "Forbidden");
    let expected =
        "services \"web\" is forbidden: Use of external IPs is denied by admission control";
    assert_eq!(refused, expected);
    api.post(SERVICES, service("web", json!([]))).await.ok();
    let patched = async |name: &str, ips: Value| {
        let path = format!("{SERVICES}/{name}");
        let patch = json!({ "spec": { "externalIPs": ips } });
        api.patch(&path, "merge-patch+json", patch).await
    };
    patched("web", json!(["203.0.113.7"]))
        .await
        .refused(403, "Forbidden");
    patched("old", json!(["203.0.113.8"])).await.ok();
    patched("old", json!(["203.0.113.8", "203.0.113.7"]))
        .await
        .refused(403, "Forbidden");
}

/// Such a label is there if the plugin was off when it was set.
#[tokio::test]
async fn an_invalid_label_that_is_stored_enforces_the_strictest_level() {
    let store = Arc::new(Memory::default());
    let off = AdmissionPlugins::new(&[], &["PodSecurity".to_owned()]).unwrap();
    let with = |registry: Registry| registry.with_admission_plugins(&off);
    let before =
        Api::over(in_process::registry_with(store.clone(), Settings::default(), with).await).await;
    before.label(json!({ ENFORCE: "strict" })).await.ok();
    let api = Api::of(in_process::registry(store, Settings::default()).await);
    let refused = api.post(PODS, pod("web")).await.refused(403, "Forbidden");
    assert!(
        refused.contains("violates PodSecurity \"restricted:latest\""),
        "{refused}"
    );
    let line = "pod_security_errors_total{fatal=\"false\",request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1";
    assert!(super::metrics().contains(line), "{}", super::metrics());
    // What does not change it is not refused.
    api.label(json!({ "team": "a" })).await.ok();
    api.label(json!({ ENFORCE: "stricter" }))
        .await
        .refused(422, "Invalid");
}
