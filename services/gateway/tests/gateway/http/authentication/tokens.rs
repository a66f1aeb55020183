//! Tokens of a file, bootstrap tokens, and the keys of ServiceAccounts' tokens.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{AuthenticationOptions, StaticTokens, in_process};
use setpoint_store::cache::Settings;
use setpoint_store::{Memory, Store as _, keys};

use super::super::api::{Api, Reply};
use super::{Client, SECRETS, nobody, user_info};

const TOKEN: &str = "abcdef.0123456789abcdef";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

/// Reviews a token for audiences; none for those of the server.
pub(super) async fn review(api: &Api, token: &str, audiences: &[&str]) -> Value {
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let spec = json!({ "token": token, "audiences": audiences });
    api.post(path, json!({ "spec": spec })).await.ok()["status"].clone()
}

pub(super) async fn of_token(api: &Api, client: &Client, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    api.identity(client, &[("authorization", &bearer)]).await
}

#[tokio::test]
async fn the_token_file_names_users_and_their_groups() {
    let text = "secret-a,jane,7,\"dev,ops\"\nsecret-b,joe,8\n";
    let api = Api::with_options(AuthenticationOptions {
        static_tokens: StaticTokens::parse(text).unwrap(),
        ..AuthenticationOptions::default()
    })
    .await;
    api.let_users_ask().await;
    let jane = json!({
        "username": "jane", "uid": "7", "groups": ["dev", "ops", "system:authenticated"],
    });
    assert_eq!(
        user_info(&of_token(&api, &nobody(), "secret-a").await),
        jane
    );
    let joe = user_info(&of_token(&api, &nobody(), "secret-b").await);
    assert_eq!(joe["groups"], json!(["system:authenticated"]));
    for other in ["secret-c", "secret-", "secret-aa"] {
        let refused = of_token(&api, &nobody(), other).await;
        refused.refused(401, "Unauthorized");
    }
    let reviewed = review(&api, "secret-a", &[]).await;
    assert_eq!(reviewed["authenticated"], true);
    assert_eq!(reviewed["user"], jane);
    let issuer = "https://kubernetes.default.svc.cluster.local";
    assert_eq!(reviewed["audiences"], json!([issuer]));
    let reviewed = review(&api, "secret-a", &["vault"]).await;
    assert_eq!(reviewed["error"], "invalid bearer token");
}

/// Checks DG16: a WebSocket of a browser has its token among the subprotocols.
#[tokio::test]
async fn a_token_of_a_websocket_may_be_of_any_kind() {
    let text = "secret-a,jane,7\n";
    let api = Api::with_options(AuthenticationOptions {
        static_tokens: StaticTokens::parse(text).unwrap(),
        ..AuthenticationOptions::default()
    })
    .await;
    api.let_users_ask().await;
    let of_websocket = async |token: &str| {
        let token = BASE64_URL_SAFE_NO_PAD.encode(token);
        let protocols = format!("base64url.bearer.authorization.k8s.io.{token}, mine");
        let headers = [
            ("upgrade", "websocket"),
            ("connection", "upgrade"),
            ("sec-websocket-protocol", protocols.as_str()),
        ];
        api.identity(&nobody(), &headers).await
    };
    let user = user_info(&of_websocket("secret-a").await);
    assert_eq!(user["username"], "jane");
    of_websocket("wrong").await.refused(401, "Unauthorized");
}

/// Creates the Secret of a bootstrap token.
async fn bootstrap(api: &Api, changes: Value) {
    let namespace = json!({ "metadata": { "name": "kube-system" } });
    api.post("/api/v1/namespaces", namespace).await;
    let mut data = json!({
        "token-id": "abcdef",
        "token-secret": "0123456789abcdef",
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": "system:bootstrappers:workers",
    });
    for (key, value) in changes.as_object().unwrap() {
        data[key] = value.clone();
    }
    let secret = json!({
        "metadata": { "name": "bootstrap-token-abcdef" },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": data,
    });
    api.post(SECRETS, secret).await.ok();
}

#[tokio::test]
async fn a_bootstrap_token_is_valid_while_its_secret_says_so() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    bootstrap(&api, json!({ "expiration": "2100-01-01T00:00:00Z" })).await;
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:workers",
        "system:authenticated",
    ];
    let user = json!({ "username": "system:bootstrap:abcdef", "groups": groups });
    assert_eq!(review(&api, TOKEN, &[]).await["user"], user);
    assert_eq!(user_info(&of_token(&api, &nobody(), TOKEN).await), user);
    let wrong = "abcdef.0123456789abcdee";
    assert_eq!(
        review(&api, wrong, &[]).await["error"],
        "invalid bearer token"
    );
    of_token(&api, &nobody(), wrong)
        .await
        .refused(401, "Unauthorized");
    api.delete(&format!("{SECRETS}/bootstrap-token-abcdef"))
        .await
        .ok();
    let gone = review(&api, TOKEN, &[]).await;
    assert_eq!(gone["authenticated"], Value::Null);
}

#[tokio::test]
async fn a_bootstrap_token_that_has_expired_or_is_for_signing_alone_is_refused() {
    for changes in [
        json!({ "expiration": "2020-01-01T00:00:00Z" }),
        json!({ "usage-bootstrap-authentication": "false" }),
        json!({ "auth-extra-groups": "system:masters" }),
    ] {
        let api = Api::with_rbac().await;
        bootstrap(&api, changes).await;
        let error = review(&api, TOKEN, &[]).await["error"].clone();
        assert_eq!(error, "invalid bearer token");
    }
}

#[tokio::test]
async fn bootstrap_tokens_can_be_switched_off() {
    let api = Api::with_options(AuthenticationOptions {
        bootstrap_tokens: false,
        ..AuthenticationOptions::default()
    })
    .await;
    bootstrap(&api, json!({})).await;
    let error = review(&api, TOKEN, &[]).await["error"].clone();
    assert_eq!(error, "invalid bearer token");
}

/// Starts a gateway over a store, whose keys sign for this time.
async fn gateway(store: &Arc<Memory>, lifetime: Option<Duration>) -> Api {
    let with = |registry: Registry| {
        let options = AuthenticationOptions {
            token_key_lifetime: lifetime,
            ..AuthenticationOptions::default()
        };
        registry.with_authentication(options).unwrap()
    };
    Api::of(in_process::registry_with(store.clone(), Settings::default(), with).await)
}

async fn issue(api: &Api) -> String {
    let path = format!("{ACCOUNTS}/default/token");
    let issued = api.post(&path, json!({})).await.ok();
    issued["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_key_that_signs_is_replaced_and_tokens_of_the_former_ones_stay_valid() {
    let store = Arc::new(Memory::default());
    let first = gateway(&store, Some(Duration::ZERO)).await;
    let namespace = json!({ "metadata": { "name": "default" } });
    first.post("/api/v1/namespaces", namespace).await.ok();
    let account = json!({ "metadata": { "name": "default" } });
    first.post(ACCOUNTS, account).await.ok();
    let mut tokens = Vec::new();
    for _ in 0..5 {
        tokens.push(issue(&first).await);
    }
    // The first two: the key is made, and its time begins when it is seen again.
    let signed_by = |token: &String| token.split('.').next().unwrap().to_owned();
    let mut headers: Vec<_> = tokens.iter().map(signed_by).collect();
    headers.dedup();
    assert_eq!(headers.len(), 4);
    // Other gateways know them all, also one that keeps its keys, and one that starts later.
    for lifetime in [Some(Duration::from_secs(3600)), None] {
        let other = gateway(&store, lifetime).await;
        for token in &tokens {
            let status = review(&other, token, &[]).await;
            assert_eq!(status["authenticated"], true, "{status}");
        }
        assert_eq!(signed_by(&issue(&other).await), headers[3]);
    }
    let published = first.get("/openid/v1/jwks").await.ok();
    assert_eq!(published["keys"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn gateways_that_replace_the_key_at_once_agree_on_one() {
    let store = Arc::new(Memory::default());
    let first = gateway(&store, None).await;
    let namespace = json!({ "metadata": { "name": "default" } });
    first.post("/api/v1/namespaces", namespace).await.ok();
    let account = json!({ "metadata": { "name": "default" } });
    first.post(ACCOUNTS, account).await.ok();
    issue(&first).await;
    let before = store.get(keys::TOKEN_KEY).await.unwrap().unwrap().value;
    let second = gateway(&store, Some(Duration::ZERO)).await;
    let third = gateway(&store, Some(Duration::ZERO)).await;
    issue(&second).await;
    let tokens = futures::join!(issue(&second), issue(&third), issue(&second));
    let after = store.get(keys::TOKEN_KEY).await.unwrap().unwrap().value;
    assert_ne!(before, after);
    for token in [tokens.0, tokens.1, tokens.2] {
        let later = gateway(&store, None).await;
        assert_eq!(review(&later, &token, &[]).await["authenticated"], true);
    }
}
