//! Writes of roles and bindings that grant more than their writer may do are refused.

use serde_json::{Value, json};

use super::super::api::{Api, Reply};
use super::{RBAC, TYPE, User, rule};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
const WRITES: &str = "create update patch";
const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns what lets somebody write roles and bindings.
fn writes() -> Value {
    rule(
        WRITES,
        GROUP,
        "roles rolebindings clusterroles clusterrolebindings",
    )
}

fn role(name: &str, rules: Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn bind(name: &str, kind: &str, role: &str) -> Value {
    let mut binding = super::binding(kind, role, "User:joe");
    binding["metadata"]["name"] = name.into();
    binding
}

async fn patch(user: &User<'_>, path: &str, body: Value) -> Reply {
    let of = "application/merge-patch+json";
    user.send("PATCH", path, of, body).await
}

#[tokio::test]
async fn a_role_may_be_written_by_whom_has_its_rules() {
    let api = Api::with_rbac().await;
    let owned = rule("get list", "core", "pods");
    api.grant("jane", json!([owned, writes()])).await;
    let jane = api.user("jane");
    jane.post(ROLES, role("own", json!([owned]))).await.ok();
    let more = json!([
        rule("get list watch delete", "core", "pods"),
        rule("get", "core", "nodes")
    ]);
    let expected = "roles.rbac.authorization.k8s.io \"more\" is forbidden: user \"jane\" \
        (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
        {APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\"]}\n\
        {APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}";
    let refused = jane.post(ROLES, role("more", more.clone())).await;
    assert_eq!(refused.refused(403, "Forbidden"), expected);
    let own = format!("{ROLES}/own");
    jane.put(&own, role("own", more.clone()))
        .await
        .refused(403, "Forbidden");
    patch(&jane, &own, json!({ "rules": more }))
        .await
        .refused(403, "Forbidden");
    let apply = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Role", "metadata": { "name": "own" }, "rules": more,
    });
    let path = format!("{own}?fieldManager=x&force=true");
    let applied = jane
        .send("PATCH", &path, "application/apply-patch+yaml", apply)
        .await;
    applied.refused(403, "Forbidden");
    let cluster_roles = format!("{RBAC}/clusterroles");
    let refused = jane.post(&cluster_roles, role("more", more)).await;
    refused.refused(403, "Forbidden");
    assert_eq!(api.get(&own).await.ok()["rules"], json!([owned]));
}

#[tokio::test]
async fn an_update_of_owners_and_finalizers_grants_nothing() {
    let api = Api::with_rbac().await;
    api.role("strong", json!([rule("*", "*", "*")])).await;
    api.grant("jane", json!([writes()])).await;
    let (jane, path) = (api.user("jane"), format!("{ROLES}/strong"));
    let finalizers = json!({ "metadata": { "finalizers": ["acme.io/hold"] } });
    patch(&jane, &path, finalizers).await.ok();
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    patch(&jane, &path, labels).await.refused(403, "Forbidden");
}

#[tokio::test]
async fn the_verb_escalate_allows_to_write_any_role() {
    let api = Api::with_rbac().await;
    let mut escalate = rule("escalate", GROUP, "roles");
    escalate["resourceNames"] = json!(["strong"]);
    let any = rule("escalate", GROUP, "clusterroles");
    api.role("strong", json!([])).await;
    api.role("weak", json!([])).await;
    api.grant("jane", json!([escalate, any, writes()])).await;
    let (jane, all) = (api.user("jane"), json!({ "rules": [rule("*", "*", "*")] }));
    patch(&jane, &format!("{ROLES}/strong"), all.clone())
        .await
        .ok();
    let refused = patch(&jane, &format!("{ROLES}/weak"), all).await;
    refused.refused(403, "Forbidden");
    let path = format!("{RBAC}/clusterroles");
    jane.post(&path, role("any", json!([rule("*", "*", "*")])))
        .await
        .ok();
}

#[tokio::test]
async fn a_role_may_be_granted_by_whom_has_its_rules_or_may_bind_it() {
    let api = Api::with_rbac().await;
    let owned = rule("get", "core", "pods");
    let mut binds = rule("bind", GROUP, "clusterroles");
    binds["resourceNames"] = json!(["bindable"]);
    api.cluster_role("bindable", json!([rule("*", "*", "*")]))
        .await;
    api.cluster_role("strong", json!([rule("*", "*", "*")]))
        .await;
    api.role("own", json!([owned])).await;
    api.role("other", json!([rule("get", "core", "secrets")]))
        .await;
    api.grant("jane", json!([owned, binds, writes()])).await;
    let jane = api.user("jane");
    jane.post(BINDINGS, bind("a", "Role", "own")).await.ok();
    jane.post(BINDINGS, bind("b", "ClusterRole", "bindable"))
        .await
        .ok();
    let everywhere = format!("{RBAC}/clusterrolebindings");
    jane.post(&everywhere, bind("b", "ClusterRole", "bindable"))
        .await
        .ok();
    let refused = jane.post(BINDINGS, bind("c", "Role", "other")).await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "rolebindings.rbac.authorization.k8s.io \"c\" is forbidden: user \"jane\" \
        (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n\
        {APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}"
    );
    let refused = jane
        .post(&everywhere, bind("c", "ClusterRole", "strong"))
        .await;
    refused.refused(403, "Forbidden");
    let refused = jane.post(BINDINGS, bind("d", "Role", "none")).await;
    let refused = refused.refused(404, "NotFound");
    assert_eq!(
        refused,
        "roles.rbac.authorization.k8s.io \"none\" not found"
    );
}

#[tokio::test]
async fn an_aggregation_needs_all_permissions() {
    let api = Api::with_rbac().await;
    api.grant("jane", json!([rule("*", "*", "*")])).await;
    let mut all = rule("*", "*", "*");
    all["verbs"] = json!(["*"]);
    let paths = json!({ "verbs": ["*"], "nonResourceURLs": ["*"] });
    api.grant("root", json!([paths, all])).await;
    let mut sum = role("sum", json!([]));
    sum["aggregationRule"] = json!({ "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] });
    let path = format!("{RBAC}/clusterroles");
    // Who may do everything may also escalate.
    api.user("root").post(&path, sum.clone()).await.ok();
    api.grant("joe", json!([writes()])).await;
    sum["metadata"]["name"] = "other".into();
    let refused = api.user("joe").post(&path, sum).await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "clusterroles.rbac.authorization.k8s.io \"other\" is forbidden: must have cluster-admin privileges to use \
        the aggregationRule"
    );
    let empty = json!({ "aggregationRule": null });
    let refused = patch(&api.user("joe"), &format!("{path}/sum"), empty).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(refused.contains("cluster-admin"), "{refused}");
}

#[tokio::test]
async fn the_administrator_may_grant_anything_and_so_may_everybody_without_rbac() {
    let api = Api::with_rbac().await;
    api.role("all", json!([rule("*", "*", "*")])).await;
    api.bind("Role", "all", "User:jane").await;
    let api = Api::start().await;
    let all = role("all", json!([rule("*", "*", "*")]));
    api.user("jane").send("POST", ROLES, TYPE, all).await.ok();
}
