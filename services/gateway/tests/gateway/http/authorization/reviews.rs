//! Reviews, and policies, ask the authorizer that decides about requests.

use serde_json::{Value, json};

use super::super::api::{Api, CONFIGMAPS, configmap};
use super::rule;
use crate::http::policies;

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

async fn review(api: &Api, path: &str, spec: Value) -> Value {
    let path = format!("{REVIEWS}/{path}");
    api.post(&path, json!({ "spec": spec })).await.ok()["status"].clone()
}

#[tokio::test]
async fn reviews_of_access_answer_as_requests_are_decided() {
    let api = Api::with_rbac().await;
    api.grant("jane", json!([rule("get", "core", "pods/log")]))
        .await;
    let attributes = |verb: &str| json!({ "verb": verb, "resource": "pods", "subresource": "log", "namespace": "default" });
    let of_jane = |verb: &str| json!({ "user": "jane", "resourceAttributes": attributes(verb) });
    let reason = "RBAC: allowed by ClusterRoleBinding \"of-jane-jane\" of ClusterRole \"of-jane\" to User \"jane\"";
    for path in [
        "subjectaccessreviews",
        "namespaces/default/localsubjectaccessreviews",
    ] {
        let status = review(&api, path, of_jane("get")).await;
        assert_eq!(status, json!({ "allowed": true, "reason": reason }));
        let status = review(&api, path, of_jane("list")).await;
        assert_eq!(status, json!({ "allowed": false }));
    }
    let paths = json!({ "user": "jane", "nonResourceAttributes": { "verb": "get", "path": "/x" } });
    let status = review(&api, "subjectaccessreviews", paths).await;
    assert_eq!(status["allowed"], false);
    let master =
        json!({ "groups": ["system:masters"], "resourceAttributes": attributes("delete") });
    let status = review(&api, "subjectaccessreviews", master).await;
    assert_eq!(status, json!({ "allowed": true }));
}

#[tokio::test]
async fn a_user_may_ask_about_itself_if_a_role_lets_it() {
    let api = Api::with_rbac().await;
    let asks = rule(
        "create",
        "authorization.k8s.io",
        "selfsubjectaccessreviews selfsubjectrulesreviews",
    );
    let mut named = rule("get", "core", "secrets");
    named["resourceNames"] = json!(["a"]);
    let urls = json!({ "verbs": ["get"], "nonResourceURLs": ["/version"] });
    api.grant(
        "jane",
        json!([asks, named, urls, rule("get", "core", "pods")]),
    )
    .await;
    let jane = api.user("jane");
    let ask = async |verb: &str| {
        let attributes = json!({ "verb": verb, "resource": "pods" });
        let spec = json!({ "spec": { "resourceAttributes": attributes } });
        jane.post(&format!("{REVIEWS}/selfsubjectaccessreviews"), spec)
            .await
            .ok()["status"]["allowed"]
            .clone()
    };
    assert_eq!(ask("get").await, true);
    assert_eq!(ask("delete").await, false);
    let spec = json!({ "spec": { "namespace": "default" } });
    let path = format!("{REVIEWS}/selfsubjectrulesreviews");
    let status = jane.post(&path, spec.clone()).await.ok()["status"].clone();
    assert_eq!(status["resourceRules"][1]["resourceNames"], json!(["a"]));
    assert_eq!(status["resourceRules"][2], rule("get", "core", "pods"));
    assert_eq!(status["nonResourceRules"], json!([urls]));
    assert_eq!(status["incomplete"], false);
    let refused = api.user("joe").post(&path, spec).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(
        refused.contains("cannot create resource \"selfsubjectrulesreviews\""),
        "{refused}"
    );
}

#[tokio::test]
async fn the_authorizer_of_policies_is_the_real_one() {
    let api = Api::with_rbac().await;
    let writes = rule("create", "core", "configmaps");
    let may = rule("paint", "core", "configmaps");
    api.grant("jane", json!([may, writes])).await;
    api.grant("joe", json!([rule("create", "core", "configmaps")]))
        .await;
    let expression = "authorizer.group('').resource('configmaps').check('paint').allowed()";
    let policy = policies::spec(json!({ "validations": [{ "expression": expression }] }));
    policies::bind(&api, policy, json!({})).await;
    let create =
        async |user: &str, name: &str| api.user(user).post(CONFIGMAPS, configmap(name)).await;
    create("jane", "a").await.ok();
    create("joe", "b").await.refused(422, "Invalid");
}
