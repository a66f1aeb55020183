//! Answers to `setpoint why` as text, for readers. The objects have the status that their controllers write, and each
//! service answers with the decision log that it would have.

use expect_test::expect;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_codec::Object;
use setpoint_gateway::in_process;
use setpoint_gateway::registry::{RequestContext, Target};
use setpoint_model::replicas::{ADDRESS, NAMESPACE as REPLICAS, SERVICE};
use setpoint_model::{Key, owner};
use setpoint_proto::apps::{Deployment, ReplicaSet};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::{ConfigMap, Event, Namespace, Pod, Service};
use setpoint_proto::meta::DeleteOptions;
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_proto::setpoint::explain_client::ExplainClient;
use setpoint_proto::setpoint::reconciles_server::{Reconciles, ReconcilesServer};
use setpoint_proto::setpoint::{
    ListReconcilesRequest, ListReconcilesResponse, ObjectRef, Reconcile, ReconcileOutcome, Step,
    Verdict, Wait, WhyRequest, WhyResponse,
};
use setpoint_proto::{ApiError, Resource};
use setpoint_store::contract::objects::{NAMESPACE, config_map, kind};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use crate::registry::eviction::{evict, protect, start};
use crate::registry::gateway::{TestGateway, pod};
use crate::registry::quota::{limit, quota};

/// A time at which a reconcile is repeated. The text does not have it, since the clock is the real one.
const LATER: i64 = i64::MAX / 2;

/// The decision log of a replica.
struct DecisionLog(Vec<Reconcile>);

#[tonic::async_trait]
impl Reconciles for DecisionLog {
    async fn list(
        &self,
        request: Request<ListReconcilesRequest>,
    ) -> Result<Response<ListReconcilesResponse>, Status> {
        let subjects = request.into_inner().subjects;
        let is_asked_for = |one: &&Reconcile| one.subject.iter().any(|it| subjects.contains(it));
        Ok(Response::new(ListReconcilesResponse {
            reconciles: self.0.iter().filter(is_asked_for).cloned().collect(),
            ..ListReconcilesResponse::default()
        }))
    }
}

/// Starts a replica of a service with this reconcile in its decision log, and announces it.
async fn announce(gateway: &TestGateway, service: &str, reconcile: Reconcile) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(ReconcilesServer::new(DecisionLog(vec![reconcile])));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let mut namespace = Namespace::default();
    namespace.metadata.name = REPLICAS.into();
    gateway.create(&namespace).await.unwrap();
    let mut lease = Lease::default();
    let metadata = &mut lease.metadata;
    (metadata.name, metadata.namespace) = (format!("{service}-0"), REPLICAS.into());
    metadata.labels = [(SERVICE.to_owned(), service.to_owned())].into();
    metadata.annotations = [(ADDRESS.to_owned(), address.to_string())].into();
    lease.spec.holder_identity = Some(metadata.name.clone());
    lease.spec.lease_duration_seconds = Some(15);
    lease.spec.renew_time = Some(jiff::Timestamp::now().into());
    let target = Target::new(kind::<Lease>(), REPLICAS, "", "").unwrap();
    let context = RequestContext::of_server();
    let created = gateway.registry.create(&context, &target, Box::new(lease));
    created.await.unwrap();
}

/// Creates an object, and reports its status.
async fn put<T: Resource + Object + DeserializeOwned>(gateway: &TestGateway, object: Value) -> T {
    let mut object: T = serde_json::from_value(object).unwrap();
    let created = gateway.create(&object).await.unwrap();
    Resource::meta_mut(&mut object).clone_from(Resource::meta(&created));
    gateway.report(&object).await.unwrap()
}

/// Returns the metadata of an object with an owner.
fn owned(name: &str, owner: &impl Resource) -> Value {
    json!({ "name": name, "labels": { "app": "web" }, "ownerReferences": [owner::reference_to(owner)] })
}

fn reference<T: Resource>(name: &str) -> ObjectRef {
    Key::new(NAMESPACE, name).in_resource(T::RESOURCE)
}

/// Asks for an explanation, once the cache has all that was written.
async fn why<T: Resource>(gateway: &TestGateway, name: &str) -> String {
    gateway.get::<T>(name).await.unwrap();
    let mut client = ExplainClient::new(in_process::router(gateway.registry.clone()));
    let subject = Some(reference::<T>(name));
    let answer = client.why(WhyRequest { subject }).await.unwrap();
    text(&answer.into_inner())
}

/// Returns an answer as text, without what other tests check: who wrote which field and when.
fn text(answer: &WhyResponse) -> String {
    let owners = answer.owners.iter();
    let owners: String = owners.map(|one| format!(" of {}", named(one))).collect();
    let subject = answer.subject.as_ref().unwrap();
    let mut lines = vec![format!("{}{owners}", named(subject))];
    let waits = answer.waits.iter();
    lines.extend(waits.flat_map(wait));
    if answer.waits.is_empty() {
        lines.push("  waits for nothing".to_owned());
    }
    for observer in &answer.observers {
        let reconciles = observer.reconciles.iter();
        lines.extend(reconciles.flat_map(|one| reconciled(&observer.instance, one)));
    }
    let events = answer.events.iter();
    lines.extend(events.map(|event| {
        format!(
            "  {} {} (x{}): {}",
            event.r#type, event.reason, event.count, event.message
        )
    }));
    lines.join("\n") + "\n"
}

fn wait(wait: &Wait) -> Vec<String> {
    let on = wait.on.as_ref().map(|on| format!("{}: ", named(on)));
    let again = if wait.until_ns > 0 {
        " (looked at again by itself)"
    } else {
        ""
    };
    let (on, reason, message) = (on.unwrap_or_default(), &wait.reason, &wait.message);
    let head = format!("  waits for {on}{reason}{again}: {message}");
    let verdicts = wait.verdicts.iter();
    let verdicts = verdicts.map(|one| format!("    {}: {}", one.node, one.objections.join(", ")));
    [head].into_iter().chain(verdicts).collect()
}

fn reconciled(instance: &str, reconcile: &Reconcile) -> Vec<String> {
    let outcome = format!("{:?}", reconcile.outcome()).to_lowercase();
    let about = named(reconcile.subject.as_ref().unwrap());
    let head = format!(
        "  {instance} on {about}: {outcome}, attempt {}",
        reconcile.attempt
    );
    let steps = reconcile.steps.iter();
    let steps = steps.map(|step| format!("    {} because {}", step.action, step.because));
    [head].into_iter().chain(steps).collect()
}

fn named(subject: &ObjectRef) -> String {
    let kind = subject.resource.split('.').next().unwrap();
    format!("{kind}/{}", subject.name)
}

/// Returns an error as the gateway answers it.
fn refusal(error: &ApiError) -> String {
    let causes = error.causes().iter();
    let causes: String = causes
        .map(|one| format!("  {}: {}\n", one.reason, one.message))
        .collect();
    format!("{}: {}\n{causes}", error.reason.name(), error.message)
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_waits_for_nodes_each_with_its_objection() {
    let gateway = TestGateway::start().await;
    let message =
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).";
    put::<Pod>(
        &gateway,
        json!({
            "metadata": { "name": "big" },
            "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
            "status": { "phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message }] },
        }),
    )
    .await;
    let verdict = |node: &str, objection: &str| Verdict {
        node: node.to_owned(),
        objections: vec![objection.to_owned()],
        score: None,
    };
    let reconcile = Reconcile {
        subject: Some(reference::<Pod>("big")),
        attempt: 1,
        outcome: ReconcileOutcome::Waiting.into(),
        next_ns: LATER,
        steps: vec![Step {
            action: "MarkUnschedulable".to_owned(),
            because: message.to_owned(),
        }],
        verdicts: vec![
            verdict("node-1", "Insufficient cpu"),
            verdict("node-2", "node(s) had untolerated taint {dedicated: db}"),
        ],
        ..Reconcile::default()
    };
    announce(&gateway, "scheduler", reconcile).await;
    expect![[r#"
        pods/big
          waits for Unschedulable (looked at again by itself): 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).
            node-1: Insufficient cpu
            node-2: node(s) had untolerated taint {dedicated: db}
          scheduler-0 on pods/big: waiting, attempt 1
            MarkUnschedulable because 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).
    "#]].assert_eq(&why::<Pod>(&gateway, "big").await);
}

#[tokio::test]
async fn a_stuck_rollout_waits_for_the_pod_whose_image_cannot_be_pulled() {
    let gateway = TestGateway::start().await;
    let template = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "web", "image": "nginx:typo" }] },
    });
    let selector = json!({ "matchLabels": { "app": "web" } });
    let late = json!({
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "ReplicaSet \"web-2\" has timed out progressing.",
    });
    let web: Deployment = put(
        &gateway,
        json!({
            "metadata": { "name": "web" },
            "spec": { "replicas": 3, "selector": selector, "template": template },
            "status": { "observedGeneration": 1, "replicas": 4, "updatedReplicas": 1, "readyReplicas": 3,
                        "availableReplicas": 3, "conditions": [late] },
        }),
    )
    .await;
    let set: ReplicaSet = put(
        &gateway,
        json!({
            "metadata": owned("web-2", &web),
            "spec": { "replicas": 1, "selector": selector, "template": template },
            "status": { "observedGeneration": 1, "replicas": 1 },
        }),
    )
    .await;
    let waiting =
        json!({ "reason": "ImagePullBackOff", "message": "Back-off pulling image \"nginx:typo\"" });
    put::<Pod>(
        &gateway,
        json!({
            "metadata": owned("web-2-x", &set),
            "spec": { "nodeName": "node-1", "containers": template["spec"]["containers"] },
            "status": { "phase": "Pending", "containerStatuses": [
                { "name": "web", "image": "nginx:typo", "state": { "waiting": waiting } }] },
        }),
    )
    .await;
    expect![[r#"
        deployments/web
          waits for ProgressDeadlineExceeded: ReplicaSet "web-2" has timed out progressing.
          waits for pods/web-2-x: ImagePullBackOff: container web: Back-off pulling image "nginx:typo"
    "#]].assert_eq(&why::<Deployment>(&gateway, "web").await);
    expect![[r#"
        pods/web-2-x of replicasets/web-2 of deployments/web
          waits for ImagePullBackOff: container web: Back-off pulling image "nginx:typo"
    "#]]
    .assert_eq(&why::<Pod>(&gateway, "web-2-x").await);
}

#[tokio::test]
async fn a_service_waits_for_the_pods_that_it_selects_and_shows_what_the_proxy_has_programmed() {
    let gateway = TestGateway::start().await;
    let waiting = json!({ "reason": "CrashLoopBackOff", "message": "back-off 10s" });
    let pod = |name: &str, app: &str| {
        json!({
            "metadata": { "name": name, "labels": { "app": app } },
            "spec": { "nodeName": "node-1", "containers": [{ "name": "web", "image": "nginx" }] },
            "status": { "phase": "Running", "containerStatuses": [
                { "name": "web", "image": "nginx", "state": { "waiting": waiting } }] },
        })
    };
    put::<Pod>(&gateway, pod("web-1", "web")).await;
    put::<Pod>(&gateway, pod("other", "other")).await;
    let port = json!({ "port": 80, "protocol": "TCP" });
    let spec = json!({ "selector": { "app": "web" }, "ports": [port] });
    put::<Service>(
        &gateway,
        json!({ "metadata": { "name": "web" }, "spec": spec }),
    )
    .await;
    let reconcile = Reconcile {
        subject: Some(reference::<Service>("web")),
        attempt: 1,
        outcome: ReconcileOutcome::Done.into(),
        steps: vec![Step {
            action: "Program tcp: connections are refused, for it has no endpoint".to_owned(),
            because: "its ports, its endpoints or the nodes have changed".to_owned(),
        }],
        ..Reconcile::default()
    };
    announce(&gateway, "proxy", reconcile).await;
    expect![[r#"
        services/web
          waits for pods/web-1: CrashLoopBackOff: container web: back-off 10s
          proxy-0 on services/web: done, attempt 1
            Program tcp: connections are refused, for it has no endpoint because its ports, its endpoints or the nodes have changed
    "#]].assert_eq(&why::<Service>(&gateway, "web").await);
}

#[tokio::test]
async fn a_deletion_waits_for_finalizers() {
    let gateway = TestGateway::start().await;
    let mut kept = config_map("kept", "1");
    kept.metadata.finalizers = vec!["example.com/backup".into(), "example.com/audit".into()];
    gateway.create(&kept).await.unwrap();
    let options = DeleteOptions::default();
    gateway.delete::<ConfigMap>("kept", options).await.unwrap();
    expect![[r#"
        configmaps/kept
          waits for Terminating: it is being deleted, and kept by finalizers: example.com/backup, example.com/audit
    "#]].assert_eq(&why::<ConfigMap>(&gateway, "kept").await);
}

/// Nothing is wrong with either object, so it is the refusal that says what the eviction waits for.
#[tokio::test]
async fn an_eviction_that_a_budget_blocks_is_refused_with_the_numbers() {
    let gateway = start(true).await;
    protect(&gateway, "pdb", 0, 2).await;
    let error = evict(&gateway, json!({})).await.unwrap_err();
    expect![[r#"
        TooManyRequests: Cannot evict pod as it would violate the pod's disruption budget.
          DisruptionBudget: The disruption budget pdb needs 2 healthy pods and has 2 currently
    "#]]
    .assert_eq(&refusal(&error));
    expect![[r#"
        pods/web
          waits for nothing
    "#]]
    .assert_eq(&why::<Pod>(&gateway, "web").await);
    expect![[r#"
        poddisruptionbudgets/pdb
          waits for nothing
    "#]]
    .assert_eq(&why::<PodDisruptionBudget>(&gateway, "pdb").await);
}

#[tokio::test]
async fn a_replica_set_fails_while_a_quota_is_full() {
    let gateway = TestGateway::start().await;
    limit(&gateway, quota(&[("pods", "1")])).await;
    gateway.create(&pod("web-a")).await.unwrap();
    let error = gateway.create(&pod("web-b")).await.unwrap_err();
    let failed = json!({
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": error.message });
    let web: ReplicaSet = put(
        &gateway,
        json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
                "template": {
                    "metadata": { "labels": { "app": "web" } },
                    "spec": { "containers": [{ "name": "web", "image": "nginx" }] },
                },
            },
            "status": { "observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
                        "conditions": [failed] },
        }),
    )
    .await;
    let event: Event = serde_json::from_value(json!({
        "metadata": { "name": "web.1", "namespace": NAMESPACE },
        "involvedObject": { "kind": "ReplicaSet", "namespace": NAMESPACE, "name": "web", "uid": web.metadata.uid },
        "type": "Warning", "reason": "FailedCreate", "count": 5,
        "message": format!("Error creating: {}", error.message),
    }))
    .unwrap();
    gateway.create(&event).await.unwrap();
    let reconcile = Reconcile {
        subject: Some(reference::<ReplicaSet>("web")),
        attempt: 5,
        outcome: ReconcileOutcome::Failed.into(),
        next_ns: LATER,
        error: format!("{}: {error}", error.reason.name()),
        steps: vec![Step {
            action: "Create { name: \"web-b\" }".to_owned(),
            because: "fewer Pods than replicas".to_owned(),
        }],
        ..Reconcile::default()
    };
    announce(&gateway, "replicaset-controller", reconcile).await;
    expect![[r#"
        replicasets/web
          waits for FailedCreate: pods "web-b" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1
          waits for NotReady: 1 of 2 Pods are ready
          waits for Failing (looked at again by itself): replicaset-controller, attempt 5: Forbidden: pods "web-b" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1
          replicaset-controller-0 on replicasets/web: failed, attempt 5
            Create { name: "web-b" } because fewer Pods than replicas
          Warning FailedCreate (x5): Error creating: pods "web-b" is forbidden: exceeded quota: quota, requested: pods=1, used: pods=1, limited: pods=1
    "#]].assert_eq(&why::<ReplicaSet>(&gateway, "web").await);
}
