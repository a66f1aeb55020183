//! Tests of the subresource `eviction`.

use serde_json::{Value, json};
use setpoint_gateway::registry::RequestContext;
use setpoint_proto::core::{Pod, PodCondition};
use setpoint_proto::meta::{DeleteOptions, IntOrString, LabelSelector, Preconditions, Status};
use setpoint_proto::policy::{Eviction, PodDisruptionBudget};
use setpoint_proto::{ApiError, Reason};

use crate::registry::gateway::{self, TestGateway, pod, typed};

/// Starts a gateway with the running Pod `web`, on a node.
pub async fn start(ready: bool) -> TestGateway {
    let gateway = TestGateway::start().await;
    let mut web = pod("web");
    web.metadata.labels = [("app".to_owned(), "web".to_owned())].into();
    web.spec.node_name = "node-1".into();
    let mut web = gateway.create(&web).await.unwrap();
    web.status.phase = "Running".into();
    web.status.conditions = vec![PodCondition {
        r#type: "Ready".into(),
        status: if ready { "True" } else { "False" }.into(),
        ..Default::default()
    }];
    gateway.report(&web).await.unwrap();
    gateway
}

/// Creates a budget for the Pod with a status that its controller has written.
pub async fn protect(gateway: &TestGateway, name: &str, allowed: i32, healthy: i32) {
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.name = name.into();
    budget.spec.min_available = Some(IntOrString::int(2));
    budget.spec.selector = Some(LabelSelector {
        match_labels: [("app".to_owned(), "web".to_owned())].into(),
        ..Default::default()
    });
    let mut budget = gateway.create(&budget).await.unwrap();
    budget.status.observed_generation = 1;
    budget.status.disruptions_allowed = allowed;
    budget.status.current_healthy = healthy;
    budget.status.desired_healthy = 2;
    gateway.report(&budget).await.unwrap();
}

pub async fn evict(gateway: &TestGateway, options: Value) -> Result<Status, ApiError> {
    let mut eviction = Eviction::default();
    eviction.metadata.name = "web".into();
    eviction.delete_options = Some(serde_json::from_value(options).unwrap());
    let target = gateway::target::<Pod>("web", "eviction");
    let context = RequestContext::of_server();
    let registry = &gateway.registry;
    typed(
        registry
            .create(&context, &target, Box::new(eviction))
            .await?,
    )
}

/// Returns whether the Pod is being deleted because of an eviction.
async fn is_evicted(gateway: &TestGateway) -> bool {
    let pod: Pod = gateway.get("web").await.unwrap();
    let mut conditions = pod.status.conditions.iter();
    let marked = conditions.any(|condition| {
        condition.r#type == "DisruptionTarget" && condition.reason == "EvictionByEvictionAPI"
    });
    assert_eq!(marked, pod.metadata.deletion_timestamp.is_some());
    marked
}

fn assert_refused(error: &ApiError, cause: &str) {
    assert_eq!(error.reason, Reason::TooManyRequests, "{error}");
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(error.message, text);
    assert_eq!(error.causes()[0].reason, "DisruptionBudget");
    assert_eq!(error.causes()[0].message, cause);
}

#[tokio::test]
async fn a_pod_without_a_budget_is_marked_and_deleted() {
    let gateway = start(true).await;
    let status = evict(&gateway, json!({})).await.unwrap();
    assert_eq!((status.status.as_str(), status.code), ("Success", 201));
    assert!(is_evicted(&gateway).await);
}

#[tokio::test]
async fn an_eviction_uses_up_a_disruption_of_the_budget() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 1, 3).await;
    evict(&gateway, json!({})).await.unwrap();
    assert!(is_evicted(&gateway).await);
    let budget: PodDisruptionBudget = gateway.get("pdb").await.unwrap();
    assert_eq!(budget.status.disruptions_allowed, 0);
    assert!(budget.status.disrupted_pods.contains_key("web"));
    assert_eq!(budget.status.conditions[0].reason, "InsufficientPods");
}

#[tokio::test]
async fn a_budget_without_disruptions_refuses_evictions() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 0, 2).await;
    let error = evict(&gateway, json!({})).await.unwrap_err();
    assert_refused(
        &error,
        "The disruption budget pdb needs 2 healthy pods and has 2 currently",
    );
    assert!(!is_evicted(&gateway).await);
}

#[tokio::test]
async fn a_budget_that_was_changed_refuses_evictions_until_its_controller_has_seen_it() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 1, 3).await;
    let mut budget: PodDisruptionBudget = gateway.get("pdb").await.unwrap();
    budget.spec.min_available = Some(IntOrString::int(3));
    gateway.update(&budget).await.unwrap();
    let error = evict(&gateway, json!({})).await.unwrap_err();
    assert_refused(
        &error,
        "The disruption budget pdb is still being processed by the server.",
    );
    assert_eq!(error.details.unwrap().retry_after_seconds, 10);
}

#[tokio::test]
async fn a_pod_that_is_not_ready_is_evicted_while_the_others_are_healthy() {
    let gateway = start(false).await;
    protect(&gateway, "pdb", 0, 1).await;
    assert!(evict(&gateway, json!({})).await.is_err());
    let mut budget: PodDisruptionBudget = gateway.get("pdb").await.unwrap();
    budget.status.current_healthy = 2;
    gateway.report(&budget).await.unwrap();
    evict(&gateway, json!({})).await.unwrap();
    assert!(is_evicted(&gateway).await);
}

#[tokio::test]
async fn several_budgets_are_not_supported() {
    let gateway = start(true).await;
    protect(&gateway, "one", 1, 3).await;
    protect(&gateway, "two", 1, 3).await;
    let status = evict(&gateway, json!({})).await.unwrap();
    assert_eq!((status.status.as_str(), status.code), ("Failure", 500));
    assert!(status.message.contains("more than one PodDisruptionBudget"));
    assert!(!is_evicted(&gateway).await);
}

#[tokio::test]
async fn a_dry_run_and_a_failed_precondition_change_nothing() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 1, 3).await;
    evict(&gateway, json!({"dryRun": ["All"]})).await.unwrap();
    let budget: PodDisruptionBudget = gateway.get("pdb").await.unwrap();
    assert_eq!(budget.status.disruptions_allowed, 1);
    let options = json!({"preconditions": {"uid": "other"}});
    let error = evict(&gateway, options).await.unwrap_err();
    assert_eq!(error.reason, Reason::Conflict);
    assert!(!is_evicted(&gateway).await);
}

#[tokio::test]
async fn a_pod_that_is_being_deleted_needs_no_budget() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 0, 2).await;
    let options = DeleteOptions {
        preconditions: Some(Preconditions::default()),
        ..Default::default()
    };
    gateway.delete::<Pod>("web", options).await.unwrap();
    evict(&gateway, json!({})).await.unwrap();
    assert!(is_evicted(&gateway).await);
}

#[tokio::test]
async fn an_eviction_must_name_its_pod() {
    let gateway = start(true).await;
    let target = gateway::target::<Pod>("web", "eviction");
    let context = RequestContext::of_server();
    let registry = &gateway.registry;
    let eviction = Box::new(Eviction::default());
    let error = registry
        .create(&context, &target, eviction)
        .await
        .unwrap_err();
    assert_eq!(
        error.message,
        "name in URL does not match name in Eviction object"
    );
}
