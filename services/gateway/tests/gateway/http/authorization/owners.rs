//! OwnerReferencesPermissionEnforcement, which a setting turns on.

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{AdmissionPlugins, AuthorizationMode as Mode, in_process};
use setpoint_store::Memory;
use setpoint_store::cache::Settings;

use super::super::api::{Api, CONFIGMAPS};
use super::rule;

async fn with_enforcement() -> Api {
    let on = ["OwnerReferencesPermissionEnforcement".to_owned()];
    let plugins = AdmissionPlugins::new(&on, &[]).unwrap();
    let with = |registry: Registry| {
        let registry = registry.with_authorization(&[Mode::Rbac]);
        registry.with_admission_plugins(&plugins)
    };
    let store = Arc::new(Memory::default());
    Api::over(in_process::registry_with(store, Settings::default(), with).await).await
}

fn owned(name: &str, kind: &str, blocks: bool) -> Value {
    let owner = json!({
        "apiVersion": "v1", "kind": kind, "name": "owner", "uid": "u", "blockOwnerDeletion": blocks,
    });
    json!({ "metadata": { "name": name, "ownerReferences": [owner] } })
}

#[tokio::test]
async fn owners_are_set_by_who_may_delete_and_block_by_who_may_set_finalizers() {
    let api = with_enforcement().await;
    let writes = rule("create patch get", "core", "configmaps");
    api.grant("jane", json!([writes])).await;
    let jane = api.user("jane");
    jane.post(CONFIGMAPS, owned("free", "Secret", false))
        .await
        .ok();
    let refused = jane
        .post(CONFIGMAPS, owned("blocking", "Secret", true))
        .await;
    let text = "configmaps \"blocking\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a \
        resource you can't set finalizers on: , <nil>";
    assert_eq!(refused.refused(403, "Forbidden"), text);
    let unknown = jane.post(CONFIGMAPS, owned("unknown", "Gizmo", true)).await;
    let unknown = unknown.refused(403, "Forbidden");
    assert!(
        unknown.ends_with(
            "cannot find RESTMapping for APIVersion v1 Kind Gizmo: no matches for kind \"Gizmo\" in version \"v1\""
        ),
        "{unknown}"
    );
    let patch = async |value: Value| {
        let path = format!("{CONFIGMAPS}/free");
        jane.send("PATCH", &path, "application/merge-patch+json", value)
            .await
    };
    patch(json!({ "metadata": { "labels": { "a": "b" } } }))
        .await
        .ok();
    let orphaned = json!({ "metadata": { "ownerReferences": null } });
    let refused = patch(orphaned).await.refused(403, "Forbidden");
    assert!(
        refused.contains("cannot set an ownerRef on a resource you can't delete: "),
        "{refused}"
    );
}

#[tokio::test]
async fn who_may_set_finalizers_may_block() {
    let api = with_enforcement().await;
    let writes = rule("create", "core", "configmaps");
    let finalizers = rule("update", "core", "secrets/finalizers");
    api.grant("joe", json!([writes, finalizers])).await;
    let joe = api.user("joe");
    joe.post(CONFIGMAPS, owned("blocking", "Secret", true))
        .await
        .ok();
    joe.post(CONFIGMAPS, owned("other", "Node", true))
        .await
        .refused(403, "Forbidden");
}

#[tokio::test]
async fn without_the_setting_owners_are_free() {
    let api = Api::with_rbac().await;
    api.grant("jane", json!([rule("create", "core", "configmaps")]))
        .await;
    let blocking = owned("blocking", "Secret", true);
    api.user("jane").post(CONFIGMAPS, blocking).await.ok();
}
