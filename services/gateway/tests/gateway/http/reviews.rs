//! Reviews, tokens of ServiceAccounts, and the users of requests.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};
use setpoint_store::{Memory, Store as _, Write, keys};
use tokio::time::sleep;

use super::api::{Api, Reply};

const AUTHENTICATION: &str = "/apis/authentication.k8s.io/v1";
const AUTHORIZATION_API: &str = "/apis/authorization.k8s.io/v1";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

impl Api {
    async fn whoami(&self, header: &'static str, value: &str) -> Reply {
        let request = Request::post(format!("{AUTHENTICATION}/selfsubjectreviews"))
            .header(CONTENT_TYPE, "application/json")
            .header(header, value);
        self.send(request, "{}").await
    }

    async fn token(&self, spec: Value) -> Reply {
        let path = format!("{ACCOUNTS}/web/token");
        self.post(&path, json!({ "spec": spec })).await
    }

    async fn review(&self, token: &Value) -> Value {
        let path = format!("{AUTHENTICATION}/tokenreviews");
        let body = json!({ "spec": { "token": token } });
        self.post(&path, body).await.ok()["status"].clone()
    }
}

#[tokio::test]
async fn every_access_is_allowed_with_the_reason() {
    let api = Api::start().await;
    let attributes = json!({ "verb": "get", "resource": "pods", "namespace": "default" });
    for (path, spec) in [
        (
            "selfsubjectaccessreviews",
            json!({ "resourceAttributes": attributes }),
        ),
        (
            "subjectaccessreviews",
            json!({ "user": "jane", "resourceAttributes": attributes }),
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            json!({ "groups": ["a"], "resourceAttributes": attributes }),
        ),
    ] {
        let path = format!("{AUTHORIZATION_API}/{path}");
        let review = api.post(&path, json!({ "spec": spec })).await;
        assert_eq!(review.code, 201);
        let status = &review.ok()["status"];
        assert_eq!(status["allowed"], true);
        let reason = status["reason"].as_str().unwrap();
        assert!(reason.contains("authorization is off"), "{reason}");
        let message = api.post(&path, json!({})).await.refused(422, "Invalid");
        assert!(
            message.contains("exactly one of nonResourceAttributes"),
            "{message}"
        );
        api.get(&path).await.refused(405, "MethodNotAllowed");
    }
    let path = format!("{AUTHORIZATION_API}/selfsubjectrulesreviews");
    let rules = api
        .post(&path, json!({ "spec": { "namespace": "default" } }))
        .await;
    assert_eq!(
        rules.ok()["status"]["resourceRules"][0]["verbs"],
        json!(["*"])
    );
    api.post(&path, json!({})).await.refused(400, "BadRequest");
    let kinds = api.get(AUTHORIZATION_API).await.ok();
    assert_eq!(kinds["resources"][0]["verbs"], json!(["create"]));
}

#[tokio::test]
async fn a_local_review_is_about_its_namespace() {
    let api = Api::start().await;
    let path = format!("{AUTHORIZATION_API}/namespaces/default/localsubjectaccessreviews");
    let spec = json!({ "user": "a", "resourceAttributes": { "verb": "get", "namespace": "b" } });
    let message = api.post(&path, json!({ "spec": spec })).await;
    let message = message.refused(422, "Invalid");
    assert!(
        message.contains("must match metadata.namespace"),
        "{message}"
    );
}

#[tokio::test]
async fn a_token_identifies_its_service_account() {
    let api = Api::start().await;
    api.post(ACCOUNTS, json!({ "metadata": { "name": "web" } }))
        .await
        .ok();
    let issued = api.token(json!({})).await;
    assert_eq!(issued.code, 201);
    let issued = issued.ok();
    assert_eq!(issued["kind"], "TokenRequest");
    assert_eq!(issued["spec"]["expirationSeconds"], 3600);
    let token = &issued["status"]["token"];
    let status = api.review(token).await;
    assert_eq!(status["authenticated"], true, "{status}");
    let user = &status["user"];
    assert_eq!(user["username"], "system:serviceaccount:default:web");
    assert_eq!(user["groups"][1], "system:serviceaccounts:default");
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let own = api.whoami(AUTHORIZATION.as_str(), &bearer).await.ok();
    assert_eq!(own["status"]["userInfo"], *user);
    for wrong in ["Bearer x", "Basic eDp5", "x"] {
        let refused = api.whoami(AUTHORIZATION.as_str(), wrong).await;
        refused.refused(401, "Unauthorized");
    }
    api.delete(&format!("{ACCOUNTS}/web")).await.ok();
    let status = api.review(token).await;
    assert_eq!(status["authenticated"], Value::Null);
    let error = status["error"].as_str().unwrap();
    assert!(error.contains("invalid bearer token"), "{error}");
    api.whoami(AUTHORIZATION.as_str(), &bearer)
        .await
        .refused(401, "Unauthorized");
}

#[tokio::test]
async fn a_token_is_valid_while_the_object_that_it_is_bound_to_exists() {
    let api = Api::start().await;
    api.post(ACCOUNTS, json!({ "metadata": { "name": "web" } }))
        .await
        .ok();
    let secrets = "/api/v1/namespaces/default/secrets";
    let to = |uid: &str| json!({ "boundObjectRef": { "kind": "Secret", "apiVersion": "v1", "name": "s", "uid": uid } });
    api.token(to("")).await.refused(404, "NotFound");
    api.post(secrets, json!({ "metadata": { "name": "s" } }))
        .await
        .ok();
    api.token(to("other")).await.refused(409, "Conflict");
    let token = api.token(to("")).await.ok()["status"]["token"].clone();
    assert_eq!(api.review(&token).await["authenticated"], true);
    api.delete(&format!("{secrets}/s")).await.ok();
    assert_eq!(api.review(&token).await["authenticated"], Value::Null);
    let map = json!({ "boundObjectRef": { "kind": "ConfigMap", "apiVersion": "v1", "name": "s" } });
    let message = api.token(map).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        "cannot bind token to object of type /v1, Kind=ConfigMap"
    );
}

/// Checks DG20: the key is gone from the store, as after a restore from before it was made, or another one is there.
#[tokio::test(start_paused = true)]
async fn gateways_accept_each_others_tokens_after_the_signing_key_was_replaced() {
    let store = Arc::new(Memory::default());
    let first = Api::sharing(store.clone()).await;
    for (path, name) in [("/api/v1/namespaces", "default"), (ACCOUNTS, "web")] {
        let object = json!({ "metadata": { "name": name } });
        first.post(path, object).await.ok();
    }
    let token = async |api: &Api| api.token(json!({})).await.ok()["status"]["token"].clone();
    let old = token(&first).await;
    let key = store.get(keys::TOKEN_KEY).await.unwrap().unwrap();
    let delete = Write::delete(keys::TOKEN_KEY, key.revision);
    store.commit(delete).await.unwrap();
    let second = Api::sharing(store.clone()).await;
    let new = token(&second).await;
    sleep(Duration::from_secs(2)).await;
    for (api, token) in [
        (&first, &old),
        (&first, &new),
        (&second, &new),
        (&second, &token(&first).await),
    ] {
        assert_eq!(api.review(token).await["authenticated"], true, "{token}");
    }

    let key = store.get(keys::TOKEN_KEY).await.unwrap().unwrap();
    let delete = Write::delete(keys::TOKEN_KEY, key.revision);
    store.commit(delete).await.unwrap();
    let kept = token(&first).await;
    assert_eq!(second.review(&kept).await["authenticated"], true);
    let restored = store.get(keys::TOKEN_KEY).await.unwrap().unwrap();
    assert_eq!(restored.value, key.value, "no token has become invalid");
    let published = first.get("/openid/v1/jwks").await.ok();
    assert_eq!(published["keys"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_token_is_for_its_audiences_and_at_least_ten_minutes() {
    let api = Api::start().await;
    api.post(ACCOUNTS, json!({ "metadata": { "name": "web" } }))
        .await
        .ok();
    let short = api.token(json!({ "expirationSeconds": 599 })).await;
    let message = short.refused(422, "Invalid");
    assert!(message.contains("may not specify a duration less than 10 minutes"));
    let token = api.token(json!({ "audiences": ["vault"] })).await.ok()["status"]["token"].clone();
    assert_eq!(api.review(&token).await["authenticated"], Value::Null);
    let path = format!("{AUTHENTICATION}/tokenreviews");
    let body = json!({ "spec": { "token": token, "audiences": ["a", "vault"] } });
    let status = api.post(&path, body).await.ok()["status"].clone();
    assert_eq!(status["audiences"], json!(["vault"]));
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let other = api.whoami(AUTHORIZATION.as_str(), &bearer).await;
    other.refused(401, "Unauthorized");
}

#[tokio::test]
async fn keys_and_issuer_are_published() {
    let api = Api::start().await;
    let keys = api.get("/openid/v1/jwks").await;
    assert_eq!(keys.headers[CONTENT_TYPE], "application/jwk-set+json");
    assert_eq!(keys.ok()["keys"][0]["alg"], "ES256");
    // HTTP/2 has the host in the URI.
    for request in [
        Request::get("/.well-known/openid-configuration").header("host", "a:1"),
        Request::get("http://a:1/.well-known/openid-configuration"),
    ] {
        let document = api.send(request, Body::empty()).await.ok();
        assert_eq!(document["jwks_uri"], "http://a:1/openid/v1/jwks");
    }
}

#[tokio::test]
async fn a_request_acts_as_the_user_that_it_names() {
    let api = Api::start().await;
    let admin = api.whoami("accept", "*/*").await.ok();
    assert_eq!(admin["status"]["userInfo"]["username"], "system:admin");
    let jane = api.whoami("impersonate-user", "jane").await.ok();
    assert_eq!(jane["status"]["userInfo"]["username"], "jane");
}

#[tokio::test]
async fn finalize_changes_only_the_finalizers_of_a_namespace() {
    let api = Api::start().await;
    let path = "/api/v1/namespaces/default";
    let mut namespace = api.get(path).await.ok();
    namespace["spec"]["finalizers"] = json!(["kubernetes", "acme.io/hold"]);
    namespace["status"]["phase"] = "Terminating".into();
    let done = api
        .put(&format!("{path}/finalize"), namespace.clone())
        .await
        .ok();
    assert_eq!(
        done["spec"]["finalizers"],
        json!(["kubernetes", "acme.io/hold"])
    );
    assert_eq!(done["status"]["phase"], "Active");
    namespace["metadata"]["resourceVersion"] = "".into();
    namespace["spec"]["finalizers"] = json!(["no domain"]);
    let refused = api.put(&format!("{path}/finalize"), namespace).await;
    refused.refused(422, "Invalid");
    api.get(&format!("{path}/finalize"))
        .await
        .refused(405, "MethodNotAllowed");
}
