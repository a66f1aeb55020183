//! Client certificates, alone and beside tokens.

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::json;
use setpoint_tls::PeerIdentity;

use super::super::api::Api;
use super::{Client, nobody, peer, user_info};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

#[tokio::test]
async fn a_certificate_names_the_user_and_its_groups() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let jane = Ok(Some(peer("jane", &["dev", "ops"])));
    let user = user_info(&api.identity(&jane, &[]).await);
    assert_eq!(
        user,
        json!({
            "username": "jane",
            "groups": ["dev", "ops", "system:authenticated"],
            "extra": {
                "authentication.kubernetes.io/credential-id": [format!("X509SHA256={}", "ab".repeat(32))],
            },
        })
    );
    let with_uid = PeerIdentity {
        uid: "7".into(),
        ..peer("jane", &[])
    };
    let user = user_info(&api.identity(&Ok(Some(with_uid)), &[]).await);
    assert_eq!(user["uid"], "7");
}

#[tokio::test]
async fn the_user_of_a_certificate_has_the_rights_of_its_roles() {
    let api = Api::with_rbac().await;
    let pods = json!([{ "verbs": ["list"], "apiGroups": [""], "resources": ["pods"] }]);
    api.grant("jane", pods).await;
    let list = |kind: &str| Request::get(format!("/api/v1/namespaces/default/{kind}"));
    let jane = Ok(Some(peer("jane", &[])));
    api.send_over_tls(&jane, list("pods"), "").await.ok();
    let refused = api.send_over_tls(&jane, list("secrets"), "").await;
    assert_eq!(
        refused.refused(403, "Forbidden"),
        "secrets is forbidden: User \"jane\" cannot list resource \"secrets\" in API group \"\" \
        in the namespace \"default\""
    );
    assert_eq!(refused.headers["x-content-type-options"], "nosniff");
    let master = Ok(Some(peer("root", &["system:masters"])));
    api.send_over_tls(&master, list("secrets"), "").await.ok();
}

#[tokio::test]
async fn a_certificate_that_is_not_accepted_is_not_taken_for_none() {
    let api = Api::with_rbac().await;
    let foreign = Err("unknown issuer".to_owned());
    let expired = PeerIdentity {
        not_after: "2020-01-01T00:00:00Z".parse().unwrap(),
        ..peer("jane", &["system:masters"])
    };
    for client in [foreign, Ok(Some(expired))] {
        for path in ["/version", "/api/v1/namespaces"] {
            let refused = api.send_over_tls(&client, Request::get(path), "").await;
            assert_eq!(refused.refused(401, "Unauthorized"), "Unauthorized");
            assert!(!refused.headers.contains_key("x-content-type-options"));
        }
    }
}

/// As upstream: the first method that knows the user decides.
#[tokio::test]
async fn a_certificate_comes_before_a_token_and_a_token_after_a_bad_certificate() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let issued = api
        .post(&format!("{ACCOUNTS}/default/token"), json!({}))
        .await;
    let issued = issued.ok();
    let bearer = format!("Bearer {}", issued["status"]["token"].as_str().unwrap());
    let name = async |client: &Client, authorization: &str| {
        let reply = api
            .identity(client, &[("authorization", authorization)])
            .await;
        user_info(&reply)["username"].as_str().unwrap().to_owned()
    };
    let jane = Ok(Some(peer("jane", &[])));
    let account = "system:serviceaccount:default:default";
    assert_eq!(name(&jane, &bearer).await, "jane");
    assert_eq!(name(&jane, "Bearer wrong").await, "jane");
    assert_eq!(name(&jane, "Basic eDp5").await, "jane");
    assert_eq!(name(&nobody(), &bearer).await, account);
    assert_eq!(name(&Err("expired".into()), &bearer).await, account);
    let wrong = api
        .identity(&nobody(), &[("authorization", "Bearer wrong")])
        .await;
    wrong.refused(401, "Unauthorized");
}

#[tokio::test]
async fn the_keys_of_tokens_are_read_by_service_accounts_over_https() {
    let api = Api::with_rbac().await;
    let _background = api.run_background();
    let spec = json!({
        "groups": ["system:serviceaccounts"],
        "nonResourceAttributes": { "verb": "get", "path": "/openid/v1/jwks" },
    });
    api.until_allowed(spec).await;
    let account = Ok(Some(peer("a", &["system:serviceaccounts"])));
    let get = |path: &str| Request::get(path).header("host", "kubernetes.default.svc:6443");
    let configuration = get("/.well-known/openid-configuration");
    let document = api.send_over_tls(&account, configuration, "").await.ok();
    let keys = "https://kubernetes.default.svc:6443/openid/v1/jwks";
    assert_eq!(document["jwks_uri"], keys);
    api.send_over_tls(&account, get("/openid/v1/jwks"), "")
        .await
        .ok();
    let jane = Ok(Some(peer("jane", &[])));
    let refused = api
        .send_over_tls(&jane, get("/openid/v1/jwks"), "")
        .await
        .refused(403, "Forbidden");
    assert_eq!(
        refused,
        "forbidden: User \"jane\" cannot get path \"/openid/v1/jwks\""
    );
}

#[tokio::test]
async fn headers_of_a_front_proxy_say_nothing_about_the_user() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let remote = [
        ("x-remote-user", "root"),
        ("x-remote-group", "system:masters"),
    ];
    let jane = Ok(Some(peer("jane", &[])));
    let user = user_info(&api.identity(&jane, &remote).await);
    assert_eq!(user["username"], "jane");
    assert_eq!(user["groups"], json!(["system:authenticated"]));
    let request = Request::post("/api/v1/namespaces").header(CONTENT_TYPE, "application/json");
    let request = remote.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let refused = api.send_over_tls(&nobody(), request, "{}").await;
    refused.refused(403, "Forbidden");
}

/// Returns the client of a node whose certificate names the UID of its Node.
fn node(name: &str, uid: &str) -> Client {
    Ok(Some(PeerIdentity {
        uid: uid.into(),
        ..peer(&format!("system:node:{name}"), &["system:nodes"])
    }))
}

#[tokio::test]
async fn a_certificate_of_a_node_is_accepted_while_its_node_exists() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let created = api
        .post("/api/v1/nodes", json!({ "metadata": { "name": "a" } }))
        .await
        .ok();
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let own = node("a", uid);
    let user = user_info(&api.identity(&own, &[]).await);
    assert_eq!(user["username"], "system:node:a");
    assert_eq!(user["uid"], uid);
    for other in [node("a", "other"), node("b", uid)] {
        let refused = api.identity(&other, &[]).await;
        assert_eq!(refused.refused(401, "Unauthorized"), "Unauthorized");
        let version = api
            .send_over_tls(&other, Request::get("/version"), "")
            .await;
        version.refused(401, "Unauthorized");
    }
    // Without a UID, it is nobody's in particular.
    let without = node("b", "");
    assert_eq!(
        user_info(&api.identity(&without, &[]).await)["username"],
        "system:node:b"
    );
    api.delete("/api/v1/nodes/a").await.ok();
    // As soon as the watch cache has the deletion.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while api.identity(&own, &[]).await.code != 401 {
        assert!(std::time::Instant::now() < deadline, "it is still accepted");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let again = json!({ "metadata": { "name": "a" } });
    api.post("/api/v1/nodes", again).await.ok();
    api.identity(&own, &[]).await.refused(401, "Unauthorized");
}

/// The gateway may hear of a Node by a certificate before its watch cache does.
#[tokio::test]
async fn a_node_that_another_gateway_has_created_is_known_at_once() {
    let store = std::sync::Arc::new(setpoint_store::Memory::default());
    let (first, second) = (Api::sharing(store.clone()).await, Api::sharing(store).await);
    for n in 0..20 {
        let name = format!("n-{n}");
        let created = json!({ "metadata": { "name": name } });
        let created = first.post("/api/v1/nodes", created).await.ok();
        let uid = created["metadata"]["uid"].as_str().unwrap();
        second.identity(&node(&name, uid), &[]).await.ok();
    }
}
