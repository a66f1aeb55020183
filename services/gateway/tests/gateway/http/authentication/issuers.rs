//! Tokens of OpenID Connect issuers: what their claims become, keys that are replaced, an issuer that hangs, and a
//! configuration that changes.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use serde_json::{Value, json};
use setpoint_gateway::registry::Registry;
use setpoint_gateway::{
    AuthenticationConfiguration, AuthenticationOptions, AuthorizationMode, in_process,
};
use setpoint_store::Memory;
use setpoint_store::cache::Settings;
use setpoint_testkit::OidcIssuer;
use tokio::time::{sleep, timeout};

use super::super::api::replace;
use super::tokens::{of_token, review};
use super::{Api, Reply, nobody, user_info};

/// Claims with a prefix become the user.
const BY_CLAIM: &str = "  claimMappings:
    username: {claim: sub, prefix: 'corp:'}
    groups: {claim: groups, prefix: 'corp:'}";
/// Expressions map claims; users with a reserved name are refused.
const BY_EXPRESSION: &str = "  claimMappings:
    username: {expression: \"claims.sub + '@partner'\"}
    groups: {expression: \"claims.roles.split(',')\"}
    uid: {expression: claims.id}
    extra: [{key: example.com/team, valueExpression: claims.team}]
  claimValidationRules:
  - {expression: \"claims.tenant in ['red', 'blue']\", message: the tenant is unknown}
  userValidationRules:
  - {expression: \"user.groups.all(group, !group.startsWith('system:'))\", message: a group is reserved}";
/// The longest time that a test waits for what happens in the background.
const LONG: Duration = Duration::from_secs(60);

fn text(entries: &[String], rest: &str) -> String {
    let entries = entries.concat();
    let jwt = if entries.is_empty() {
        "jwt: []\n"
    } else {
        "jwt:\n"
    };
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n{jwt}{entries}{rest}"
    )
}

async fn registry(text: &str) -> Arc<Registry> {
    let configuration = AuthenticationConfiguration::read(text.as_bytes(), &[]).unwrap();
    let options = AuthenticationOptions {
        configuration,
        ..AuthenticationOptions::default()
    };
    let with = |registry: Registry| {
        let registry = registry.with_authentication(options).unwrap();
        registry.with_authorization(&[AuthorizationMode::Rbac])
    };
    let store = Arc::new(Memory::default());
    in_process::registry_with(store, Settings::default(), with).await
}

async fn gateway(entries: &[String]) -> Api {
    let api = Api::over(registry(&text(entries, "")).await).await;
    api.let_users_ask().await;
    api
}

async fn whoami(api: &Api, token: &str) -> Reply {
    of_token(api, &nobody(), token).await
}

/// Returns the user of a token, once the keys of its issuer are known.
async fn eventually(api: &Api, token: &str) -> Value {
    let asked = async {
        loop {
            let reply = whoami(api, token).await;
            if reply.code != 401 {
                return user_info(&reply);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, asked)
        .await
        .expect("the token is known in time")
}

/// Returns why a token is refused.
async fn refusal(api: &Api, token: &str) -> String {
    whoami(api, token).await.refused(401, "Unauthorized");
    let reviewed = review(api, token, &[]).await;
    assert_eq!(reviewed["authenticated"], Value::Null);
    reviewed["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn each_of_two_issuers_has_its_own_rules() {
    let (corp, partner) = (OidcIssuer::start(), OidcIssuer::start());
    let api = gateway(&[corp.entry(BY_CLAIM), partner.entry(BY_EXPRESSION)]).await;
    let jane = corp.token(&json!({"sub": "jane", "groups": ["dev", "ops"], "jti": "t-1"}));
    let expected = json!({
        "username": "corp:jane",
        "groups": ["corp:dev", "corp:ops", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=t-1"]},
    });
    assert_eq!(eventually(&api, &jane).await, expected);
    let claims = json!({"sub": "joe", "roles": "dev,qa", "id": "7", "team": "a", "tenant": "red"});
    let expected = json!({
        "username": "joe@partner",
        "uid": "7",
        "groups": ["dev", "qa", "system:authenticated"],
        "extra": {"example.com/team": ["a"]},
    });
    let joe = partner.token(&claims);
    assert_eq!(eventually(&api, &joe).await, expected);
    let changed = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        partner.token(&claims)
    };
    for (token, expected) in [
        (changed("tenant", json!("green")), "the tenant is unknown"),
        (
            changed("roles", json!("system:masters")),
            "a group is reserved",
        ),
        (
            changed("aud", json!(["other"])),
            "oidc: expected audience in [\"setpoint\"] got [\"other\"]",
        ),
        (changed("exp", json!(1000)), "oidc: token is expired"),
        (
            changed("nbf", json!(9_999_999_999_u64)),
            "oidc: current time is before the nbf (not before) time",
        ),
        (
            changed("iss", json!("https://other")),
            "invalid bearer token",
        ),
        // One issuer does not sign for the other.
        (
            changed("iss", json!(corp.url())),
            "failed to verify signature",
        ),
    ] {
        let why = refusal(&api, &token).await;
        assert!(why.contains(expected), "{why}");
    }
}

#[tokio::test]
async fn a_token_of_a_new_key_is_verified_without_a_restart() {
    let issuer = OidcIssuer::start();
    let api = gateway(&[issuer.entry(BY_CLAIM)]).await;
    let before = issuer.token(&json!({"sub": "jane"}));
    eventually(&api, &before).await;
    issuer.rotate(1);
    let after = issuer.token(&json!({"sub": "joe"}));
    let found = whoami(&api, &after).await;
    assert_eq!(user_info(&found)["username"], "corp:joe");
    // The key before is withdrawn.
    refusal(&api, &before).await;
}

/// Checks V16: tokens that nobody has signed make no more calls than one a second.
#[tokio::test]
async fn forged_tokens_do_not_fetch_the_keys_each_time() {
    let (issuer, other) = (OidcIssuer::start(), OidcIssuer::start());
    let api = gateway(&[issuer.entry(BY_CLAIM)]).await;
    eventually(&api, &issuer.token(&json!({"sub": "jane"}))).await;
    let fetched = issuer.fetched();
    let begun = tokio::time::Instant::now();
    let forged = other.token(&json!({"sub": "jane", "iss": issuer.url()}));
    let refused = (0..100).map(|_| whoami(&api, &forged));
    for reply in futures::future::join_all(refused).await {
        reply.refused(401, "Unauthorized");
    }
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(issuer.fetched() <= fetched + seconds + 2);
}

/// An issuer that hangs delays neither other tokens nor those of its own that a known key has signed.
#[tokio::test]
async fn an_issuer_that_hangs_delays_nobody_else() {
    let (well, late, ill) = (
        OidcIssuer::start(),
        OidcIssuer::start(),
        OidcIssuer::start(),
    );
    ill.hang(true);
    let entries = [&well, &late, &ill].map(|issuer| issuer.entry(BY_CLAIM));
    let api = gateway(&entries).await;
    let jane = json!({"sub": "jane"});
    eventually(&api, &late.token(&jane)).await;
    late.hang(true);
    eventually(&api, &well.token(&jane)).await;
    // Never were there keys of this one.
    let why = refusal(&api, &ill.token(&jane)).await;
    assert_eq!(why, "oidc: authenticator not initialized");
    // The keys of this one are known, and a forged token waits for others.
    let forged = well.token(&json!({"sub": "jane", "iss": late.url()}));
    let waiting = whoami(&api, &forged);
    let mut waiting = std::pin::pin!(waiting);
    let known = async {
        for issuer in [&well, &late] {
            let reply = whoami(&api, &issuer.token(&jane)).await;
            assert_eq!(user_info(&reply)["username"], "corp:jane");
        }
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("the forged token does not wait"),
        () = known => {}
    }
    waiting.await.refused(401, "Unauthorized");
}

/// An issuer is added by a change of the file; a file that is wrong leaves the one before in force, with an Event and a
/// metric.
#[tokio::test]
async fn a_changed_configuration_is_in_force_unless_it_is_wrong() {
    let (first, second) = (OidcIssuer::start(), OidcIssuer::start());
    let only_first = text(&[first.entry(BY_CLAIM)], "");
    let registry = registry(&only_first).await;
    let api = Api::over(registry.clone()).await;
    api.let_users_ask().await;
    let namespace = json!({ "metadata": { "name": "setpoint-system" } });
    api.post("/api/v1/namespaces", namespace).await.ok();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("authentication.yaml");
    fs::write(&path, &only_first).unwrap();
    let followed = registry.follow_authentication(path.clone(), "gateway-reload");
    let jane = json!({"sub": "jane"});
    let changes = async {
        eventually(&api, &first.token(&jane)).await;
        let fetched = first.fetched();
        let both = text(&[first.entry(BY_CLAIM), second.entry(BY_CLAIM)], "");
        replace(&path, &both);
        eventually(&api, &second.token(&jane)).await;
        // What has not changed is kept.
        assert_eq!(first.fetched(), fetched);
        replace(&path, both.replace("claim: sub", "claims: sub"));
        let events = "/api/v1/namespaces/default/events";
        let told = |count: usize| {
            api.eventually(events, move |reply| {
                reply.json()["items"]
                    .as_array()
                    .is_some_and(|items| items.len() == count)
            })
        };
        let event = told(1).await.json()["items"][0].clone();
        assert_eq!(event["reason"], "AuthenticationConfigurationInvalid");
        assert_eq!(
            event["message"],
            "the authentication configuration before stays in force (of gateway-reload): strict decoding error: \
             unknown field \"jwt[0].claimMappings.username.claims\""
        );
        for issuer in [&first, &second] {
            let found = whoami(&api, &issuer.token(&jane)).await;
            assert_eq!(user_info(&found)["username"], "corp:jane");
        }
        // The rule for requests without credentials is that of the start.
        replace(&path, text(&[], "anonymous: {enabled: false}\n"));
        let events = told(2).await.json();
        let messages = events["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|event| &event["message"]);
        let changed = "anonymous: Forbidden: changed from initial configuration file";
        assert!(
            messages
                .filter_map(Value::as_str)
                .any(|message| message.ends_with(changed))
        );
        // An issuer of which other rules are in force keeps its keys: nothing of it is fetched.
        second.hang(true);
        let renamed = BY_CLAIM.replace("corp:", "new:");
        replace(&path, text(&[second.entry(&renamed)], ""));
        let removed = async {
            while whoami(&api, &first.token(&jane)).await.code != 401 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, removed).await.unwrap();
        let found = whoami(&api, &second.token(&jane)).await;
        assert_eq!(user_info(&found)["username"], "new:jane");
        // One is counted after it is in force.
        let counted = async {
            while !reloads_are_counted(&api).await {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, counted).await.unwrap();
    };
    tokio::select! {
        () = followed => unreachable!("it runs until dropped"),
        () = changes => {}
    }
}

/// Returns whether two reloads of the configuration have failed and two succeeded.
async fn reloads_are_counted(api: &Api) -> bool {
    let metrics = String::from_utf8_lossy(&api.get("/metrics").await.body).into_owned();
    let value = |status: &str| {
        let start = "apiserver_authentication_config_controller_automatic_reloads_total{";
        let end = format!("status=\"{status}\"}} 2");
        metrics
            .lines()
            .filter(|line| line.starts_with(start))
            .any(|line| line.ends_with(&end))
    };
    value("failure") && value("success")
}

/// Checks V20: with conditions, requests without credentials are accepted at their paths only.
#[tokio::test]
async fn anonymous_requests_can_be_limited_to_paths() {
    let rule = "anonymous: {enabled: true, conditions: [{path: /version}]}\n";
    let api = Api::over(registry(&text(&[], rule)).await).await;
    let _background = api.run_background();
    let get = async |path: &str| {
        let request = Request::get(path);
        api.send_over_tls(&nobody(), request, "").await
    };
    let allowed = json!({
        "user": "system:anonymous",
        "groups": ["system:unauthenticated"],
        "nonResourceAttributes": { "verb": "get", "path": "/version" },
    });
    api.until_allowed(allowed).await;
    get("/version").await.ok();
    for path in ["/version/", "/api", "/api/v1/pods"] {
        get(path).await.refused(401, "Unauthorized");
    }
    let off = registry(&text(&[], "anonymous: {enabled: false}\n")).await;
    let api = Api::over(off).await;
    let request = Request::get("/version");
    let refused = api.send_over_tls(&nobody(), request, "").await;
    refused.refused(401, "Unauthorized");
}
