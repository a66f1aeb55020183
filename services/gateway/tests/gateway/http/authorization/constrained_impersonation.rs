//! Constrained impersonation (KEP-5284): each value needs a permission in the mode of the user that is acted as, and so
//! does the verb of the request.

use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Builder;
use serde_json::{Value, json};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{GetRequest, ListRequest};
use setpoint_proto::{ApiError, Reason};
use tonic::transport::Channel;

use super::super::api::{Api, Reply};
use super::super::authentication::{WHOAMI, peer};
use super::matrix::of_user;
use super::rule;

const AUTHENTICATION: &str = "authentication.k8s.io";
const PODS: &str = "/api/v1/namespaces/default/pods";
/// The user that acts as others.
const TESTER: &str = "tester";

fn named(mode: &str, resource: &str, name: &str) -> Value {
    let mut rule = rule(&format!("impersonate:{mode}"), AUTHENTICATION, resource);
    rule["resourceNames"] = json!([name]);
    rule
}

/// Returns the rule that allows to ask who one is in a mode.
fn asks_in(mode: &str) -> Value {
    let verb = format!("impersonate-on:{mode}:create");
    rule(&verb, AUTHENTICATION, "selfsubjectreviews")
}

/// Starts a gateway on which everybody may ask who it is and list Pods, and the tester may do this.
async fn start(rules: Value) -> Api {
    let api = Api::with_rbac().await;
    let everybody = json!([
        rule("create", AUTHENTICATION, "selfsubjectreviews"),
        rule("list get", "core", "pods"),
    ]);
    api.cluster_role("everybody", everybody).await;
    api.bind_everywhere("everybody", "Group:system:authenticated")
        .await;
    let asked = json!({ "verb": "list", "resource": "pods" });
    api.until_allowed(json!({ "groups": ["system:authenticated"], "resourceAttributes": asked }))
        .await;
    // The last rule is the one that is waited for.
    let mut rules = rules.as_array().unwrap().clone();
    rules.push(rule("get", "core", "bindings"));
    api.grant(TESTER, rules.into()).await;
    api
}

async fn send(api: &Api, request: Builder, headers: &[(&str, &str)], body: &'static str) -> Reply {
    let add = |request: Builder, (name, value): &(&str, &str)| request.header(*name, *value);
    let request = headers.iter().fold(request, add);
    let tester = Ok(Some(peer(TESTER, &[])));
    api.send_over_tls(&tester, request, body).await
}

async fn whoami(api: &Api, headers: &[(&str, &str)]) -> Reply {
    let request = Request::post(WHOAMI).header(CONTENT_TYPE, "application/json");
    send(api, request, headers, "{}").await
}

fn groups(reply: &Reply) -> Value {
    reply.ok()["status"]["userInfo"]["groups"].clone()
}

fn refused(of: &str, verb: &str, resource: &str, scope: &str) -> String {
    format!(
        "{of} is forbidden: User \"{TESTER}\" cannot {verb} resource \"{resource}\" in API group \
        \"{AUTHENTICATION}\" {scope}"
    )
}

#[tokio::test]
async fn a_user_acts_as_another_only_by_the_verbs_that_its_roles_name() {
    let version = json!({
        "verbs": ["impersonate-on:user-info:get"], "nonResourceURLs": ["/version"],
    });
    let api = start(json!([
        version,
        named("user-info", "users", "jane"),
        rule("impersonate-on:user-info:list", "core", "pods"),
    ]))
    .await;
    let jane = [("impersonate-user", "jane")];
    send(&api, Request::get(PODS), &jane, "").await.ok();
    let get = send(&api, Request::get(format!("{PODS}/a")), &jane, "").await;
    assert_eq!(
        get.refused(403, "Forbidden"),
        "pods \"a\" is forbidden: User \"tester\" cannot impersonate-on:user-info:get resource \"pods\" \
        in API group \"\" in the namespace \"default\""
    );
    assert_eq!(get.headers["x-content-type-options"], "nosniff");
    let root = [("impersonate-user", "root")];
    let other = send(&api, Request::get(PODS), &root, "").await;
    assert_eq!(
        other.refused(403, "Forbidden"),
        refused(
            "users.authentication.k8s.io \"root\"",
            "impersonate:user-info",
            "users",
            "at the cluster scope"
        )
    );
    // It is jane who may not read the version.
    let version = send(&api, Request::get("/version"), &jane, "").await;
    assert_eq!(
        version.refused(403, "Forbidden"),
        "forbidden: User \"jane\" cannot get path \"/version\""
    );
    let health = send(&api, Request::get("/livez"), &jane, "").await;
    assert_eq!(
        health.refused(403, "Forbidden"),
        "forbidden: User \"tester\" cannot impersonate-on:user-info:get path \"/livez\""
    );
}

#[tokio::test]
async fn each_value_of_a_user_is_a_question_of_its_own() {
    let api = start(json!([
        asks_in("user-info"),
        named("user-info", "users", "jane"),
        named("user-info", "groups", "dev"),
        named("user-info", "uids", "7"),
        named("user-info", "userextras/acme.com/scope", "test"),
    ]))
    .await;
    let jane = ("impersonate-user", "jane");
    let all = [
        jane,
        ("impersonate-group", "dev"),
        ("impersonate-uid", "7"),
        ("impersonate-extra-acme.com%2fscope", "test"),
    ];
    let reply = whoami(&api, &all).await;
    assert_eq!(groups(&reply), json!(["dev", "system:authenticated"]));
    let user = reply.json()["status"]["userInfo"].clone();
    assert_eq!(
        (&user["uid"], &user["extra"]["acme.com/scope"][0]),
        (&json!("7"), &json!("test"))
    );
    let of = |value: &str, resource: &str, subresource: &str| {
        let of = match value {
            "" => format!("{resource}.{AUTHENTICATION}"),
            value => format!("{resource}.{AUTHENTICATION} \"{value}\""),
        };
        let resource = format!("{resource}{subresource}");
        refused(
            &of,
            "impersonate:user-info",
            &resource,
            "at the cluster scope",
        )
    };
    for (header, expected) in [
        (("impersonate-group", "ops"), of("ops", "groups", "")),
        (("impersonate-uid", "8"), of("8", "uids", "")),
        (
            ("impersonate-extra-acme.com%2fscope", "prod"),
            of("prod", "userextras", "/acme.com/scope"),
        ),
        (
            ("impersonate-group", "system:masters"),
            of("system:masters", "groups", "")
                + ": impersonating the system:masters group is not allowed",
        ),
        (
            ("impersonate-group", ""),
            of("", "groups", "") + ": impersonating the empty string group is not allowed",
        ),
        (
            ("impersonate-extra-scope", "test"),
            of("", "userextras", "")
                + ": impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"scope\": \
                must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
    ] {
        let reply = whoami(&api, &[jane, header]).await;
        assert_eq!(reply.refused(403, "Forbidden"), expected);
    }
}

#[tokio::test]
async fn many_values_are_allowed_by_one_rule_about_all() {
    let api = start(json!([
        asks_in("user-info"),
        named("user-info", "users", "jane"),
        named("user-info", "groups", "*"),
    ]))
    .await;
    let jane = ("impersonate-user", "jane");
    let group = |name| ("impersonate-group", name);
    let four = [jane, group("a"), group("b"), group("c"), group("d")];
    let all = json!(["a", "b", "c", "d", "system:authenticated"]);
    assert_eq!(groups(&whoami(&api, &four).await), all);
    let three = whoami(&api, &four[..4]).await;
    three.refused(403, "Forbidden");
}

#[tokio::test]
async fn nodes_and_service_accounts_have_modes_and_groups_of_their_own() {
    let api = start(json!([
        asks_in("arbitrary-node"),
        asks_in("serviceaccount"),
        named("arbitrary-node", "nodes", "n1"),
        named("serviceaccount", "serviceaccounts", "web"),
        // These are about other users.
        rule("impersonate:user-info", AUTHENTICATION, "users"),
    ]))
    .await;
    let node = whoami(&api, &[("impersonate-user", "system:node:n1")]).await;
    assert_eq!(
        groups(&node),
        json!(["system:nodes", "system:authenticated"])
    );
    let other = whoami(&api, &[("impersonate-user", "system:node:n2")]).await;
    let expected = refused(
        "nodes.authentication.k8s.io \"n2\"",
        "impersonate:arbitrary-node",
        "nodes",
        "at the cluster scope",
    );
    assert_eq!(other.refused(403, "Forbidden"), expected);
    let account = [("impersonate-user", "system:serviceaccount:default:web")];
    let expected = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    assert_eq!(groups(&whoami(&api, &account).await), json!(expected));
    let other = [("impersonate-user", "system:serviceaccount:default:db")];
    let other = whoami(&api, &other).await.refused(403, "Forbidden");
    let expected = refused(
        "serviceaccounts.authentication.k8s.io \"db\"",
        "impersonate:serviceaccount",
        "serviceaccounts",
        "in the namespace \"default\"",
    );
    assert_eq!(other, expected);
}

#[tokio::test]
async fn an_agent_acts_as_the_node_that_its_pod_runs_on() {
    let api = start(json!([])).await;
    let node = json!({ "metadata": { "name": "n1" } });
    api.post("/api/v1/nodes", node).await.ok();
    let containers = json!([{ "name": "agent", "image": "agent" }]);
    let pod = json!({
        "metadata": { "name": "agent" },
        "spec": { "nodeName": "n1", "serviceAccountName": "default", "containers": containers },
    });
    api.post(PODS, pod).await.ok();
    let to = json!({ "kind": "Pod", "apiVersion": "v1", "name": "agent" });
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let issued = api.post(path, json!({ "spec": { "boundObjectRef": to } }));
    let issued = issued.await.ok();
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().unwrap());
    let agent = "system:serviceaccount:default:default";
    let mut rules = vec![asks_in("associated-node")];
    rules.push(named("associated-node", "nodes", "*"));
    api.cluster_role("agent", rules.into()).await;
    api.bind_everywhere("agent", "ServiceAccount:default/default")
        .await;
    let asked = json!({
        "verb": "impersonate:associated-node", "group": AUTHENTICATION, "resource": "nodes", "name": "*",
    });
    api.until_allowed(json!({ "user": agent, "resourceAttributes": asked }))
        .await;
    let acts_as = async |name: &str| {
        let request = Request::post(WHOAMI)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, &bearer)
            .header("impersonate-user", format!("system:node:{name}"));
        api.send_over_tls(&Ok(None), request, "{}").await
    };
    let own = acts_as("n1").await;
    assert_eq!(
        groups(&own),
        json!(["system:nodes", "system:authenticated"])
    );
    assert_eq!(
        own.json()["status"]["userInfo"]["username"],
        "system:node:n1"
    );
    let other = acts_as("n2").await.refused(403, "Forbidden");
    let verb = "impersonate-on:arbitrary-node:create";
    assert!(
        other.contains(&format!("User \"{agent}\" cannot {verb}")),
        "{other}"
    );
}

#[tokio::test]
async fn attributes_without_a_name_are_a_bad_request() {
    let api = start(json!([])).await;
    let reply = whoami(&api, &[("impersonate-group", "dev")]).await;
    assert_eq!(
        reply.refused(400, "BadRequest"),
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"dev\"}, \
        Extra:map[string][]string(nil)} without impersonating a user name"
    );
}

/// As over HTTP, although the call says in its message what it asks for.
#[tokio::test]
async fn a_call_of_grpc_acts_as_another_by_the_same_verbs() {
    let api = Api::with_rbac().await;
    let tester = "system:serviceaccount:default:default";
    api.grant("jane", json!([rule("list get", "core", "pods")]))
        .await;
    let rules = json!([
        named("user-info", "users", "jane"),
        rule("impersonate-on:user-info:list", "core", "pods"),
        rule("get", "core", "bindings"),
    ]);
    api.grant(tester, rules).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = api.post(account, json!({})).await.ok();
    let token = format!("Bearer {}", token["status"]["token"].as_str().unwrap());
    let server = api.listen().await;
    let channel = Channel::from_shared(server.url.clone()).unwrap();
    let mut client = ObjectsClient::new(channel.connect().await.unwrap());
    let list = ListRequest {
        resource: "pods".into(),
        namespace: "default".into(),
        ..Default::default()
    };
    let get = GetRequest {
        resource: "pods".into(),
        namespace: "default".into(),
        name: "a".into(),
        ..Default::default()
    };
    macro_rules! as_user {
        ($message:expr, $user:expr) => {{
            let mut request = of_user($message.clone(), $user, &[]);
            let metadata = request.metadata_mut();
            metadata.insert("authorization", token.parse().unwrap());
            request
        }};
    }
    client.list(as_user!(list, "jane")).await.unwrap();
    let forbidden = |status: tonic::Status| {
        let error = ApiError::from(status);
        assert_eq!(error.reason, Reason::Forbidden);
        error.message
    };
    let message = forbidden(client.get(as_user!(get, "jane")).await.unwrap_err());
    assert!(
        message.contains("cannot impersonate-on:user-info:get resource \"pods\""),
        "{message}"
    );
    let message = forbidden(client.list(as_user!(list, "root")).await.unwrap_err());
    assert!(
        message.contains("cannot impersonate:user-info resource \"users\""),
        "{message}"
    );
    // By itself, the account may not list.
    let mut own = tonic::Request::new(list);
    own.metadata_mut()
        .insert("authorization", token.parse().unwrap());
    let message = forbidden(client.list(own).await.unwrap_err());
    assert!(
        message.contains(&format!("User {tester:?} cannot list")),
        "{message}"
    );
}

/// A service that acts as others by the oldest mode is refused the others, which are tried before.
#[tokio::test]
async fn a_mode_that_is_tried_in_vain_is_not_counted_as_a_refusal() {
    let api = Api::with_rbac().await;
    let service = "system:setpoint:controller-manager";
    api.grant("jane", json!([rule("list", "core", "pods")]))
        .await;
    api.grant(service, json!([rule("impersonate", "core", "users")]))
        .await;
    let refused = || {
        let families = prometheus::gather();
        let name = "setpoint_refused_service_requests_total";
        let family = families.iter().find(|family| family.name() == name);
        let metrics = family.into_iter().flat_map(|family| family.get_metric());
        let counts = metrics.map(|metric| metric.get_counter().get_value());
        counts.sum::<f64>()
    };
    let client = Ok(Some(peer(service, &["system:setpoint"])));
    let list = async |user: &str| {
        let request = Request::get(PODS).header("impersonate-user", user);
        api.send_over_tls(&client, request, "").await
    };
    list("jane").await.ok();
    assert_eq!(refused(), 0.0);
    // Two modes apply to this user, and the service may act in neither: that is one refusal.
    let request = Request::get(PODS)
        .header("impersonate-user", "jane")
        .header("impersonate-group", "dev");
    let reply = api.send_over_tls(&client, request, "").await;
    reply.refused(403, "Forbidden");
    assert_eq!(refused(), 1.0);
}
