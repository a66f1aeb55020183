//! Impersonation: each value of its headers needs a permission of its own.

use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use super::super::api::{Api, Reply};
use super::rule;

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A user that has a token: the ServiceAccount `web`.
struct Web {
    api: Api,
    token: String,
}

impl Web {
    /// Starts a gateway, and lets the account do this as every user may.
    async fn start(rules: Value) -> Self {
        let api = Api::with_rbac().await;
        let account = json!({ "metadata": { "name": "web" } });
        api.post(ACCOUNTS, account).await.ok();
        let tokens = format!("{ACCOUNTS}/web/token");
        let issued = api.post(&tokens, json!({ "spec": {} })).await;
        let token = issued.ok()["status"]["token"].clone();
        let reviews = rule("create", "authentication.k8s.io", "selfsubjectreviews");
        api.cluster_role("whoami", json!([reviews])).await;
        api.bind_everywhere("whoami", "Group:system:authenticated")
            .await;
        api.cluster_role("of-web", rules).await;
        api.bind_everywhere("of-web", "ServiceAccount:default/web")
            .await;
        let reviewed = json!({
            "verb": "create", "group": "authentication.k8s.io", "resource": "selfsubjectreviews",
        });
        let groups = ["system:authenticated"];
        api.until_allowed(json!({ "groups": groups, "resourceAttributes": reviewed }))
            .await;
        let own = json!({ "verb": "impersonate", "resource": "users", "name": "jane" });
        let user = "system:serviceaccount:default:web";
        api.until_allowed(json!({ "user": user, "resourceAttributes": own }))
            .await;
        Self {
            api,
            token: token.as_str().unwrap().into(),
        }
    }

    async fn as_user(&self, headers: &[(&'static str, &'static str)]) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let request = Request::post(WHO)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, bearer);
        let add = |request: http::request::Builder, (name, value): &(&str, &str)| {
            request.header(*name, *value)
        };
        let request = headers.iter().fold(request, add);
        self.api.send(request, "{}").await
    }
}

fn named(resource: &str, group: &str, name: &str) -> Value {
    let mut rule = rule("impersonate", group, resource);
    rule["resourceNames"] = json!([name]);
    rule
}

#[tokio::test]
async fn a_user_acts_only_as_those_whom_its_roles_name() {
    let web = Web::start(json!([
        named("users", "core", "jane"),
        named("groups", "core", "tenants"),
        named("uids", "authentication.k8s.io", "7"),
        named("userextras/scope", "authentication.k8s.io", "dev"),
        named("serviceaccounts", "core", "other"),
    ]))
    .await;
    let jane = ("impersonate-user", "jane");
    let all = [
        jane,
        ("impersonate-group", "tenants"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-scope", "dev"),
    ];
    let user = web.as_user(&all).await.ok()["status"]["userInfo"].clone();
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["tenants", "system:authenticated"]));
    let account = [("impersonate-user", "system:serviceaccount:default:other")];
    let user = web.as_user(&account).await.ok()["status"]["userInfo"].clone();
    assert_eq!(user["groups"][1], "system:serviceaccounts:default");
    let refused = |of: &str, resource: &str, group: &str, scope: &str| {
        format!(
            "{of} is forbidden: User \"system:serviceaccount:default:web\" cannot impersonate resource \"{resource}\" \
            in API group \"{group}\" {scope}"
        )
    };
    let cluster = "at the cluster scope";
    for (headers, expected) in [
        (
            vec![("impersonate-user", "root")],
            refused("users \"root\"", "users", "", cluster),
        ),
        (
            vec![(
                "impersonate-user",
                "system:serviceaccount:kube-system:other-one",
            )],
            refused(
                "serviceaccounts \"other-one\"",
                "serviceaccounts",
                "",
                "in the namespace \"kube-system\"",
            ),
        ),
        (
            vec![
                jane,
                ("impersonate-group", "tenants"),
                ("impersonate-group", "system:masters"),
            ],
            refused("groups \"system:masters\"", "groups", "", cluster),
        ),
        (
            vec![jane, ("impersonate-uid", "8")],
            refused(
                "uids.authentication.k8s.io \"8\"",
                "uids",
                "authentication.k8s.io",
                cluster,
            ),
        ),
        (
            vec![jane, ("impersonate-extra-scope", "prod")],
            refused(
                "userextras.authentication.k8s.io \"prod\"",
                "userextras/scope",
                "authentication.k8s.io",
                cluster,
            ),
        ),
        (
            vec![jane, ("impersonate-extra-other", "dev")],
            refused(
                "userextras.authentication.k8s.io \"dev\"",
                "userextras/other",
                "authentication.k8s.io",
                cluster,
            ),
        ),
    ] {
        let reply = web.as_user(&headers).await;
        assert_eq!(reply.refused(403, "Forbidden"), expected);
    }
}

#[tokio::test]
async fn an_impersonated_user_has_no_rights_of_the_one_who_acts() {
    let web = Web::start(json!([
        rule("list", "core", "pods"),
        rule("impersonate", "core", "users"),
    ]))
    .await;
    let bearer = format!("Bearer {}", web.token);
    let list = || Request::get("/api/v1/pods").header(AUTHORIZATION, &bearer);
    web.api.send(list(), "").await.ok();
    let reply = web
        .api
        .send(list().header("impersonate-user", "jane"), "")
        .await;
    let refused = reply.refused(403, "Forbidden");
    assert!(refused.contains("User \"jane\" cannot list"), "{refused}");
}
