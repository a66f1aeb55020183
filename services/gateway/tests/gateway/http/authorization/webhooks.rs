//! Authorizers of a configuration: webhooks beside roles, and files that change.

use std::fs;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use setpoint_gateway::AuthorizationConfiguration;
use setpoint_gateway::registry::Registry;
use setpoint_testkit::{Answer, HttpsServer};
use tempfile::TempDir;

use super::rule;
use crate::http::api::{Api, replace};
use crate::http::audit::Audit;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A webhook that decides by the name of the user.
fn server() -> HttpsServer {
    HttpsServer::start(|_, body| {
        let mut review: Value = serde_json::from_slice(body).unwrap();
        review["status"] = match review["spec"]["user"].as_str().unwrap() {
            "allowed" => json!({ "allowed": true, "reason": "it is a friend" }),
            "denied" => json!({ "allowed": false, "denied": true, "reason": "it is a foe" }),
            "both" => json!({ "allowed": true, "denied": true }),
            "failing" => return Answer::Status(500),
            "hanging" => return Answer::Hang,
            _ => json!({ "allowed": false, "reason": "it is a stranger" }),
        };
        Answer::Json(review.to_string())
    })
}

/// A server, and the configurations that name it.
struct Webhook {
    server: HttpsServer,
    directory: TempDir,
    /// The number of questions of the start of a gateway.
    before: AtomicUsize,
}

impl Webhook {
    fn start() -> Self {
        let (server, directory) = (server(), tempfile::tempdir().unwrap());
        fs::write(
            directory.path().join("webhook.yaml"),
            server.kubeconfig("/"),
        )
        .unwrap();
        Self {
            server,
            directory,
            before: AtomicUsize::new(0),
        }
    }

    /// Returns the text of a configuration with the webhook before roles, and further fields.
    fn text(&self, rest: &str) -> String {
        let file = self.directory.path().join("webhook.yaml");
        let policy = if rest.contains("failurePolicy") {
            ""
        } else {
            "    failurePolicy: NoOpinion\n"
        };
        let timeout = if rest.contains("timeout") {
            ""
        } else {
            "    timeout: 20s\n"
        };
        format!(
            "apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: friends
  webhook:
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {}}}
{policy}{timeout}{rest}
- {{type: RBAC, name: roles}}
",
            file.display()
        )
    }

    fn configuration(&self, rest: &str) -> AuthorizationConfiguration {
        AuthorizationConfiguration::read(self.text(rest).as_bytes()).unwrap()
    }

    async fn api(&self, rest: &str) -> Api {
        let configuration = self.configuration(rest);
        let with = |registry: Registry| registry.with_authorizers(configuration).unwrap();
        let store = std::sync::Arc::new(setpoint_store::Memory::default());
        let settings = setpoint_store::cache::Settings::default();
        let registry = setpoint_gateway::in_process::registry_with(store, settings, with);
        let api = Api::over(registry.await).await;
        let rules = json!([rule("list", "core", "services")]);
        api.cluster_role("lists-services", rules).await;
        for user in [
            "allowed", "denied", "failing", "hanging", "stranger", "last",
        ] {
            let user = format!("User:{user}");
            api.bind_everywhere("lists-services", &user).await;
        }
        let attributes = json!({ "verb": "list", "resource": "services" });
        let spec = json!({ "user": "last", "resourceAttributes": attributes });
        api.until_allowed(spec).await;
        self.before.store(self.server.requests().len(), SeqCst);
        api
    }

    /// Returns the questions since the start of the gateway.
    fn questions(&self) -> Vec<(String, Bytes)> {
        self.server.requests().split_off(self.before.load(SeqCst))
    }

    fn asked(&self) -> usize {
        self.questions().len()
    }
}

impl Api {
    async fn reviewed(&self, user: &str, resource: impl Into<String>) -> Value {
        let resource = resource.into();
        let attributes = json!({ "verb": "list", "resource": resource, "namespace": "default" });
        let spec = json!({ "user": user, "resourceAttributes": attributes });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let review = self.post(path, json!({ "spec": spec })).await.ok();
        review["status"].clone()
    }
}

#[tokio::test]
async fn a_webhook_allows_denies_or_leaves_it_to_roles() {
    let webhook = Webhook::start();
    let api = webhook.api("").await;
    api.user("allowed").get(PODS).await.ok();
    let denied = api.user("denied").get(SERVICES).await;
    let denied = denied.refused(403, "Forbidden");
    assert!(denied.ends_with(": it is a foe"), "{denied}");
    api.user("both")
        .get(PODS)
        .await
        .refused(500, "InternalError");
    api.user("stranger").get(SERVICES).await.ok();
    let refused = api.user("stranger").get(PODS).await;
    let refused = refused.refused(403, "Forbidden");
    assert!(refused.ends_with(": it is a stranger"), "{refused}");
    let status = api.reviewed("allowed", "pods").await;
    assert_eq!(
        status,
        json!({ "allowed": true, "reason": "it is a friend" })
    );
    let status = api.reviewed("denied", "services").await;
    let expected = json!({ "allowed": false, "denied": true, "reason": "it is a foe" });
    assert_eq!(status, expected);
    let (path, body) = webhook.questions().remove(0);
    let sent: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(path, "/");
    let expected = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "allowed",
            "groups": ["system:authenticated"],
            "resourceAttributes": {"verb": "list", "version": "v1", "resource": "pods", "namespace": "default"},
        },
    });
    assert_eq!(sent, expected);
    // The administrator is asked about nowhere.
    let asked = webhook.asked();
    api.get(PODS).await.ok();
    assert_eq!(webhook.asked(), asked);
}

#[tokio::test]
async fn answers_are_used_again_for_their_time() {
    let webhook = Webhook::start();
    let api = webhook.api("    cacheUnauthorizedRequests: false\n").await;
    for _ in 0..3 {
        api.user("allowed").get(PODS).await.ok();
    }
    assert_eq!(webhook.asked(), 1);
    for _ in 0..3 {
        api.user("stranger").get(SERVICES).await.ok();
    }
    assert_eq!(webhook.asked(), 4);
    api.user("allowed").get(SERVICES).await.ok();
    assert_eq!(webhook.asked(), 5);
}

#[tokio::test]
async fn conditions_say_about_which_requests_a_webhook_is_asked() {
    let webhook = Webhook::start();
    let conditions = "    matchConditions:
    - {expression: has(request.resourceAttributes)}
    - {expression: request.resourceAttributes.resource == 'pods'}
    - {expression: \"!request.user.startsWith('system:')\"}
";
    let api = webhook.api(conditions).await;
    api.user("denied").get(SERVICES).await.ok();
    api.user("denied")
        .get("/version")
        .await
        .refused(403, "Forbidden");
    api.user("system:x")
        .get(PODS)
        .await
        .refused(403, "Forbidden");
    assert_eq!(webhook.asked(), 0);
    let denied = api.user("denied").get(PODS).await;
    assert!(denied.refused(403, "Forbidden").ends_with("it is a foe"));
    assert_eq!(webhook.asked(), 1);
}

/// A webhook that fails or hangs refuses a request, or leaves it to roles, as its policy says; other requests go on.
#[tokio::test]
async fn the_failure_policy_decides_without_an_answer() {
    let webhook = Webhook::start();
    let api = webhook.api("    timeout: 1s\n").await;
    for user in ["failing", "hanging"] {
        api.user(user).get(SERVICES).await.ok();
        let failed = api.user(user).get(PODS).await;
        failed.refused(500, "InternalError");
    }
    let status = api.reviewed("failing", "pods").await;
    let expected = json!({
        "allowed": false, "evaluationError": "the server has answered 500 Internal Server Error",
    });
    assert_eq!(status, expected);
    let api = webhook
        .api("    failurePolicy: Deny\n    timeout: 1s\n")
        .await;
    for user in ["failing", "hanging"] {
        let failed = api.user(user).get(SERVICES).await;
        failed.refused(500, "InternalError");
    }
    let status = api.reviewed("hanging", "services").await;
    let expected = json!({
        "allowed": false, "denied": true, "evaluationError": "context deadline exceeded",
    });
    assert_eq!(status, expected);
    let failing = "    failurePolicy: Deny\n    matchConditions: [{expression: \"request.user != 'allowed' || request.extra['a'][0] == 'b'\"}]\n";
    let api = webhook.api(failing).await;
    api.user("allowed")
        .get(PODS)
        .await
        .refused(500, "InternalError");
}

/// Users who can ask a webhook often could switch it off otherwise, where a failure leaves the decision to roles.
#[tokio::test]
async fn a_request_that_finds_the_webhook_busy_is_refused_whatever_the_policy_says() {
    let webhook = Webhook::start();
    let api = webhook.api("").await;
    // Asked by an administrator, who needs no seats. A name for each, since equal questions have one answer.
    let asked = (0..200).map(|n| api.reviewed("hanging", format!("services-{n}")));
    let mut statuses: FuturesUnordered<_> = asked.collect();
    // The others hang: of 200, no more than 160 may wait.
    for _ in 0..40 {
        let refused = json!({
            "allowed": false, "denied": true, "reason": "too many calls wait for the webhook",
        });
        assert_eq!(statuses.next().await, Some(refused));
    }
}

#[tokio::test]
async fn a_request_waits_for_the_webhook_alone() {
    let webhook = Webhook::start();
    let api = webhook.api("").await;
    let user = api.user("hanging");
    let mut waiting = std::pin::pin!(user.get(SERVICES));
    let others = async {
        api.user("allowed").get(PODS).await.ok();
        api.get(PODS).await.ok();
    };
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("the request does not wait"),
        () = others => {}
    }
}

#[tokio::test]
async fn the_reason_is_an_annotation_of_the_record() {
    let webhook = Webhook::start();
    let audit = Audit::at("Metadata");
    let configuration = webhook.configuration("");
    let api = audit
        .api_with(|registry| registry.with_authorizers(configuration).unwrap())
        .await;
    for (user, decision, reason) in [
        ("allowed", "allow", "it is a friend"),
        ("denied", "forbid", "it is a foe"),
    ] {
        audit.forget().await;
        api.user(user).get(PODS).await;
        let event = Audit::only(&audit.events().await, "ResponseComplete");
        assert_eq!(
            event["annotations"]["authorization.k8s.io/decision"],
            decision
        );
        assert_eq!(event["annotations"]["authorization.k8s.io/reason"], reason);
    }
}

/// Expressions of admission policies ask webhooks, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_waits_for_a_webhook_where_the_code_cannot() {
    let webhook = Webhook::start();
    let api = webhook.api("").await;
    let policy = json!({
        "metadata": { "name": "asks" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }] },
            "validations": [{
                "expression": "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
            }],
        },
    });
    let group = "/apis/admissionregistration.k8s.io/v1";
    api.post(&format!("{group}/validatingadmissionpolicies"), policy)
        .await
        .ok();
    let binding = json!({
        "metadata": { "name": "asks" },
        "spec": { "policyName": "asks", "validationActions": ["Deny"] },
    });
    api.post(
        &format!("{group}/validatingadmissionpolicybindings"),
        binding,
    )
    .await
    .ok();
    api.grant("stranger", json!([rule("create", "core", "configmaps")]))
        .await;
    let create = async |user: &str| {
        let body = json!({ "metadata": { "generateName": "a-" } });
        api.user(user)
            .post("/api/v1/namespaces/default/configmaps", body)
            .await
    };
    for _ in 0..500 {
        if create("stranger").await.code == 422 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    create("stranger").await.refused(422, "Invalid");
    create("allowed").await.ok();
}

#[tokio::test]
async fn a_changed_configuration_is_in_force_unless_it_is_wrong() {
    let webhook = Webhook::start();
    let configuration = webhook.configuration("");
    let with = |registry: Registry| registry.with_authorizers(configuration).unwrap();
    let store = std::sync::Arc::new(setpoint_store::Memory::default());
    let settings = setpoint_store::cache::Settings::default();
    let registry = setpoint_gateway::in_process::registry_with(store, settings, with).await;
    let api = Api::over(registry.clone()).await;
    let namespace = json!({ "metadata": { "name": "setpoint-system" } });
    api.post("/api/v1/namespaces", namespace).await.ok();
    let path = webhook.directory.path().join("authorization.yaml");
    fs::write(&path, webhook.text("")).unwrap();
    let followed = registry.follow_authorization(path.clone(), "gateway-0");
    let changes = async {
        api.user("allowed").get(PODS).await.ok();
        let only_pods = "    matchConditions: [{expression: \"request.resourceAttributes.resource == 'services'\"}]\n";
        replace(&path, webhook.text(only_pods));
        for _ in 0..1000 {
            if api.user("allowed").get(PODS).await.code == 403 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        api.user("allowed")
            .get(PODS)
            .await
            .refused(403, "Forbidden");
        api.user("allowed").get(SERVICES).await.ok();
        replace(&path, webhook.text("").replace("type: RBAC", "type: Node"));
        let told = api.eventually("/api/v1/namespaces/default/events", |reply| {
            !reply.json()["items"][0].is_null()
        });
        let event = told.await.json()["items"][0].clone();
        assert_eq!(event["reason"], "AuthorizationConfigurationInvalid");
        assert_eq!(
            event["message"],
            "the authorization configuration before stays in force (of gateway-0): authorizer type Node is not allowed \
             if it was not enabled at initial server startup"
        );
        api.user("allowed").get(SERVICES).await.ok();
    };
    tokio::select! {
        () = followed => unreachable!("it runs until dropped"),
        () = changes => {}
    }
}
