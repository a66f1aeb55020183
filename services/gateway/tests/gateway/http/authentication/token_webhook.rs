//! Tokens that another server knows.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use setpoint_gateway::{AuthenticationOptions, StaticTokens, TokenWebhook};
use setpoint_testkit::{Answer, HttpsServer};
use tempfile::TempDir;

use super::tokens::{of_token, review};
use super::{Api, Reply, nobody, user_info};

/// Returns the status about a token.
fn status(token: &str) -> Value {
    match token {
        "known" => json!({
            "authenticated": true,
            "user": {"username": "jane", "uid": "7", "groups": ["dev"], "extra": {"example.com/a": ["b"]}},
        }),
        "for-vault" => json!({
            "authenticated": true, "user": {"username": "jane"}, "audiences": ["vault"],
        }),
        "expired" => json!({ "authenticated": false, "error": "the token has expired" }),
        _ => json!({ "authenticated": false }),
    }
}

fn server() -> HttpsServer {
    HttpsServer::start(|_, body| {
        let mut review: Value = serde_json::from_slice(body).unwrap();
        let token = review["spec"]["token"].as_str().unwrap().to_owned();
        if token == "hangs" {
            return Answer::Hang;
        }
        review["status"] = status(&token);
        Answer::Json(review.to_string())
    })
}

/// Starts a gateway that asks a server.
async fn gateway(server: &HttpsServer, ttl: Duration) -> (Api, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("webhook.yaml");
    fs::write(&file, server.kubeconfig("/authenticate")).unwrap();
    let api = Api::with_options(AuthenticationOptions {
        static_tokens: StaticTokens::parse("secret,joe,8\n").unwrap(),
        token_webhook: Some(TokenWebhook::read(&file, ttl).unwrap()),
        ..AuthenticationOptions::default()
    })
    .await;
    api.let_users_ask().await;
    (api, directory)
}

async fn whoami(api: &Api, token: &str) -> Reply {
    of_token(api, &nobody(), token).await
}

#[tokio::test]
async fn a_webhook_knows_tokens_that_nothing_else_knows() {
    let server = server();
    let (api, _directory) = gateway(&server, Duration::from_secs(120)).await;
    let expected = json!({
        "username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"], "extra": {"example.com/a": ["b"]},
    });
    for _ in 0..3 {
        assert_eq!(user_info(&whoami(&api, "known").await), expected);
        whoami(&api, "unknown").await.refused(401, "Unauthorized");
    }
    // Both answers are used again.
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let (path, body) = &requests[0];
    let sent: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(path, "/authenticate");
    let issuer = "https://kubernetes.default.svc.cluster.local";
    let expected = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "known", "audiences": [issuer]},
    });
    assert_eq!(sent, expected);
    assert_eq!(user_info(&whoami(&api, "secret").await)["username"], "joe");
    assert_eq!(server.requests().len(), 2, "it is not asked about others");
    let expired = review(&api, "expired", &[]).await;
    assert_eq!(expired["error"], "the token has expired");
    let for_vault = review(&api, "for-vault", &["vault", "other"]).await;
    assert_eq!(for_vault["audiences"], json!(["vault"]));
    whoami(&api, "for-vault").await.refused(401, "Unauthorized");
}

#[tokio::test]
async fn without_a_time_each_answer_is_used_once() {
    let server = server();
    let (api, _directory) = gateway(&server, Duration::ZERO).await;
    for _ in 0..2 {
        whoami(&api, "known").await.ok();
    }
    assert_eq!(server.requests().len(), 2);
}

/// Only requests with tokens that nothing else knows wait for a webhook that hangs, and no longer than its limit.
#[tokio::test]
async fn a_webhook_that_hangs_delays_nobody_else() {
    let server = server();
    let (api, _directory) = gateway(&server, Duration::from_secs(120)).await;
    let mut waiting = std::pin::pin!(whoami(&api, "hangs"));
    let known = async {
        assert_eq!(user_info(&whoami(&api, "secret").await)["username"], "joe");
        assert_eq!(user_info(&whoami(&api, "known").await)["username"], "jane");
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("the unknown token does not wait"),
        () = known => {}
    }
    waiting.await.refused(401, "Unauthorized");
}
