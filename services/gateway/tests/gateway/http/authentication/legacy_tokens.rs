//! Tokens of ServiceAccounts in Secrets: the gateway fills the Secrets, records the use of the tokens, and refuses
//! those that are no longer valid.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::super::api::{Api, CONFIGMAPS, Reply};
use super::tokens::{of_token, review};
use super::{nobody, user_info};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TRACKING: &str = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

fn secret(name: &str, account: &str) -> Value {
    json!({
        "metadata": { "name": name, "annotations": { "kubernetes.io/service-account.name": account } },
        "type": "kubernetes.io/service-account-token",
    })
}

fn today() -> String {
    Timestamp::now().to_zoned(TimeZone::UTC).date().to_string()
}

/// Returns a value of the data of a Secret; empty if there is none.
fn data(secret: &Value, key: &str) -> String {
    let value = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(BASE64_STANDARD.decode(value).unwrap()).unwrap()
}

/// Creates a Secret for the account `robot`, and waits for its token.
pub async fn issue(api: &Api, name: &str) -> String {
    api.post(SECRETS, secret(name, "robot")).await.ok();
    let has_token = |reply: &Reply| !data(&reply.json(), "token").is_empty();
    let path = format!("{SECRETS}/{name}");
    let filled = api.eventually(&path, has_token).await;
    data(&filled.json(), "token")
}

/// Creates the account `robot`, which lists these Secrets.
pub async fn account(api: &Api, secrets: Value) -> Value {
    let account = json!({ "metadata": { "name": "robot" }, "secrets": secrets });
    api.post(ACCOUNTS, account).await.ok()
}

async fn until_gone(api: &Api, path: &str) {
    api.eventually(path, |reply| reply.code == 404).await;
}

#[tokio::test]
async fn a_secret_of_an_account_gets_a_token_that_identifies_it() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let _background = api.run_background();
    let uid = account(&api, json!([])).await["metadata"]["uid"].clone();
    let token = issue(&api, "of-robot").await;
    let user = user_info(&of_token(&api, &nobody(), &token).await);
    let groups = [
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ];
    let robot =
        json!({ "username": "system:serviceaccount:default:robot", "uid": uid, "groups": groups });
    assert_eq!(user, robot);
    let reviewed = review(&api, &token, &[]).await;
    assert_eq!(reviewed["user"], robot);
    assert_eq!(reviewed["audiences"], json!([ISSUER]));
    let reviewed = review(&api, &token, &["vault"]).await;
    let why = r#"is invalid for the target audiences ["vault"]"#;
    assert!(
        reviewed["error"].as_str().unwrap().contains(why),
        "{reviewed}"
    );
    // The bundle may come later than the token.
    let bundle = json!({ "metadata": { "name": "kube-root-ca.crt" }, "data": { "ca.crt": "PEM" } });
    api.post(CONFIGMAPS, bundle).await.ok();
    let path = format!("{SECRETS}/of-robot");
    let has_bundle = |reply: &Reply| data(&reply.json(), "ca.crt") == "PEM";
    let filled = api.eventually(&path, has_bundle).await.json();
    assert_eq!(data(&filled, "namespace"), "default");
    assert_eq!(data(&filled, "token"), token);
    let annotations = &filled["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/service-account.uid"], uid);
    api.delete(&path).await.ok();
    // After this read, the cache no longer has it.
    until_gone(&api, &path).await;
    let refused = of_token(&api, &nobody(), &token).await;
    refused.refused(401, "Unauthorized");
    let reviewed = review(&api, &token, &[]).await;
    assert_eq!(
        reviewed["error"],
        "[invalid bearer token, Token has been invalidated]"
    );
}

#[tokio::test]
async fn secrets_and_accounts_do_not_outlive_each_other() {
    let api = Api::start().await;
    let _background = api.run_background();
    account(&api, json!([{ "name": "first" }, { "name": "other" }])).await;
    issue(&api, "first").await;
    issue(&api, "second").await;
    api.delete(&format!("{SECRETS}/first")).await.ok();
    let path = format!("{ACCOUNTS}/robot");
    let is_unlisted = |reply: &Reply| reply.json()["secrets"] == json!([{ "name": "other" }]);
    api.eventually(&path, is_unlisted).await;
    api.delete(&path).await.ok();
    until_gone(&api, &format!("{SECRETS}/second")).await;
    api.post(SECRETS, secret("early", "nobody")).await.ok();
    until_gone(&api, &format!("{SECRETS}/early")).await;
}

#[tokio::test]
async fn the_use_of_a_token_is_recorded_once_a_day() {
    let api = Api::start().await;
    let _background = api.run_background();
    account(&api, json!([])).await;
    let token = issue(&api, "of-robot").await;
    let path = format!("{SECRETS}/of-robot");
    assert_eq!(
        api.get(&path).await.json()["metadata"]["labels"],
        Value::Null
    );
    review(&api, &token, &[]).await;
    let is_labelled =
        |reply: &Reply| reply.json()["metadata"]["labels"] == json!({ LAST_USED: today() });
    let labelled = api.eventually(&path, is_labelled).await.json();
    review(&api, &token, &[]).await;
    // What a further use would write comes before the label of another token.
    let other = issue(&api, "other").await;
    review(&api, &other, &[]).await;
    api.eventually(&format!("{SECRETS}/other"), is_labelled)
        .await;
    let version = |secret: &Value| secret["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&api.get(&path).await.json()), version(&labelled));
}

#[tokio::test]
async fn a_token_that_is_marked_invalid_is_refused_until_the_label_is_removed() {
    let api = Api::start().await;
    let _background = api.run_background();
    account(&api, json!([])).await;
    let token = issue(&api, "of-robot").await;
    let path = format!("{SECRETS}/of-robot");
    let label = async |value: Value| {
        let patch = json!({ "metadata": { "labels": { INVALID_SINCE: value } } });
        api.patch(&path, "merge-patch+json", patch).await.ok();
    };
    label(json!("2026-11-28")).await;
    let refused = review(&api, &token, &[]).await;
    assert_eq!(refused["authenticated"], Value::Null);
    assert_eq!(
        refused["error"],
        "[invalid bearer token, the token in secret default/of-robot for service account default/robot has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token]"
    );
    // That it was tried is recorded, too.
    let is_labelled = |reply: &Reply| reply.json()["metadata"]["labels"][LAST_USED] == today();
    api.eventually(&path, is_labelled).await;
    label(Value::Null).await;
    assert_eq!(review(&api, &token, &[]).await["authenticated"], true);
}

#[tokio::test]
async fn whoever_uses_a_generated_token_is_warned() {
    let api = Api::with_rbac().await;
    api.let_users_ask().await;
    let _background = api.run_background();
    account(&api, json!([{ "name": "generated" }])).await;
    for (name, warned) in [("generated", true), ("manual", false)] {
        let token = issue(&api, name).await;
        let reply = of_token(&api, &nobody(), &token).await;
        let warning = reply
            .headers
            .get("warning")
            .map(|text| text.to_str().unwrap());
        let expected = r#"299 - "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.""#;
        assert_eq!(warning, warned.then_some(expected), "{name}");
    }
}

#[tokio::test]
async fn the_day_since_which_uses_are_recorded_is_kept() {
    let api = Api::start().await;
    let _background = api.run_background();
    let is_today = |reply: &Reply| reply.json()["data"] == json!({ "since": today() });
    api.eventually(TRACKING, is_today).await;
    let set = async |since: &str| {
        let patch = json!({ "data": { "since": since } });
        api.patch(TRACKING, "merge-patch+json", patch).await.ok()
    };
    set("soon").await;
    api.eventually(TRACKING, is_today).await;
    api.delete(TRACKING).await.ok();
    api.eventually(TRACKING, is_today).await;
    // A day of before stays.
    let before = set("2020-02-29").await["metadata"]["resourceVersion"].clone();
    account(&api, json!([])).await;
    issue(&api, "of-robot").await;
    let now = api.get(TRACKING).await.json();
    assert_eq!(now["metadata"]["resourceVersion"], before);
}
