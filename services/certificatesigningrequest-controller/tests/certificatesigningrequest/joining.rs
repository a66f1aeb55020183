//! Tests of agents that join by a token, and of the certificates of nodes, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, SanType};
use setpoint_certificatesigningrequest_controller::{Action, Approval, Signing, plan};
use setpoint_controller::client::Preconditions;
use setpoint_model::Key;
use setpoint_model::bootstrap_token::{
    EXPIRATION, ID, JOINING_AGENTS, NAMESPACE, NODE_ANNOTATION, TYPE, USED_BY_ANNOTATION,
};
use setpoint_model::users::NODES;
use setpoint_proto::Reason;
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::core::{Namespace, Node, NodeAddress, NodeCondition, Secret};
use setpoint_tls::PeerIdentity;

use super::signing::{Fixture, KUBELET_CLIENT, NODE_USAGES, request, request_by, token};

const MINUTE: Duration = Duration::from_secs(60);
const LATER: Duration = Duration::from_secs(11);

/// Starts a gateway with a token for the node `node`.
async fn with_token(node: &str) -> Fixture {
    let fixture = Fixture::start(Signing::default()).await;
    let mut namespace = Namespace::default();
    namespace.metadata.name = NAMESPACE.into();
    let _ = fixture.gateway.create(&namespace).await;
    let mut secret = Secret {
        r#type: TYPE.into(),
        ..Secret::default()
    };
    let key = token();
    (secret.metadata.namespace, secret.metadata.name) = (key.namespace, key.name);
    let annotations = &mut secret.metadata.annotations;
    annotations.insert(NODE_ANNOTATION.into(), node.into());
    let expiry = Timestamp::now() + SignedDuration::from_mins(15);
    for (name, value) in [(ID, "abcdef".to_owned()), (EXPIRATION, expiry.to_string())] {
        let value = value.into_bytes().into();
        secret.data.insert(name.to_owned(), value);
    }
    fixture.gateway.create(&secret).await.unwrap();
    fixture
}

async fn ask(fixture: &Fixture, name: &str) {
    let client = fixture.gateway.acting_as(
        "system:bootstrap:abcdef",
        &["system:bootstrappers", JOINING_AGENTS],
    );
    ask_as(&client, &request(name, NODES), KUBELET_CLIENT, NODE_USAGES).await;
}

async fn ask_as(client: &setpoint_controller::Client, pem: &str, signer: &str, usages: &[&str]) {
    let mut request = CertificateSigningRequest::default();
    request.metadata.name = "one".into();
    request.spec.request = pem.to_owned().into_bytes().into();
    request.spec.signer_name = signer.into();
    request.spec.usages = usages.iter().map(|usage| (*usage).to_owned()).collect();
    client.create(&request).await.unwrap();
}

/// Returns the reason why the request was denied.
async fn denial(fixture: &Fixture) -> String {
    let conditions = fixture.get().await.unwrap().status.conditions;
    let denied = conditions.into_iter().find(|one| one.r#type == "Denied");
    denied.unwrap().message
}

async fn ready(fixture: &Fixture) {
    let mut node: Node = fixture.gateway.get(&Key::new("", "one")).await.unwrap();
    node.status.conditions = vec![NodeCondition {
        r#type: "Ready".into(),
        status: "True".into(),
        last_heartbeat_time: (Timestamp::now() + SignedDuration::from_secs(2)).into(),
        ..NodeCondition::default()
    }];
    fixture.gateway.update_status(&node).await.unwrap();
}

#[tokio::test]
async fn a_token_brings_in_its_node_and_is_removed_when_that_is_ready() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    let request = fixture.get().await.unwrap();
    assert_eq!(fixture.reconcile().await, [Action::Claim]);
    let claimed: Secret = fixture.gateway.get(&token()).await.unwrap();
    let used_by = &claimed.metadata.annotations[USED_BY_ANNOTATION];
    assert_eq!(*used_by, request.metadata.uid);
    let approved = Action::Approve(Approval::Token);
    assert_eq!(fixture.reconcile().await, [approved]);
    let created = Action::CreateNode("one".into());
    assert_eq!(fixture.reconcile().await, [created]);
    fixture.reconcile().await;
    let certificate = fixture.get().await.unwrap().status.certificate;
    let identity = PeerIdentity::of_pem(&certificate).unwrap();
    let node: Node = fixture.gateway.get(&Key::new("", "one")).await.unwrap();
    assert_eq!(identity.name, "system:node:one");
    assert_eq!(identity.groups, [NODES]);
    assert_eq!(identity.uid, node.metadata.uid);
    assert!(fixture.reconcile().await.is_empty(), "the agent reads it");
    let again = plan(&fixture.world(Duration::ZERO).await).again;
    assert!(again.is_some_and(|again| again <= MINUTE), "{again:?}");
    ready(&fixture).await;
    assert_eq!(fixture.reconcile().await, [Action::RemoveToken]);
    let gone = fixture.gateway.get::<Secret>(&token()).await;
    assert_eq!(gone.unwrap_err().reason, Reason::NotFound);
    assert!(fixture.reconcile().await.is_empty());
}

#[tokio::test]
async fn a_token_is_removed_a_minute_after_its_use() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    for _ in 0..4 {
        fixture.reconcile().await;
    }
    assert_eq!(fixture.reconcile_after(MINUTE).await, [Action::RemoveToken]);
}

#[tokio::test]
async fn a_token_is_of_no_use_for_another_node() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:two").await;
    fixture.reconcile().await;
    assert_eq!(
        denial(&fixture).await,
        "the bootstrap token is for the node \"one\", not for \"system:node:two\""
    );
    let kept: Secret = fixture.gateway.get(&token()).await.unwrap();
    assert!(!kept.metadata.annotations.contains_key(USED_BY_ANNOTATION));
    assert!(fixture.reconcile().await.is_empty());
}

#[tokio::test]
async fn a_token_is_used_once() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    fixture.reconcile().await;
    let first = fixture.get().await.unwrap();
    let key = Key::new("", "one");
    let gateway = &fixture.gateway;
    let deleted = gateway.delete::<CertificateSigningRequest>(&key, Preconditions::default(), None);
    deleted.await.unwrap();
    ask(&fixture, "system:node:one").await;
    assert_ne!(
        fixture.get().await.unwrap().metadata.uid,
        first.metadata.uid
    );
    fixture.reconcile().await;
    assert_eq!(denial(&fixture).await, "the bootstrap token was used");
}

/// Two machines of one name, with a token each: the second one is told, as kubeadm does, and the first one goes on.
#[tokio::test]
async fn a_token_for_a_node_that_is_ready_is_of_no_use() {
    let fixture = with_token("one").await;
    let mut node = Node::default();
    node.metadata.name = "one".into();
    fixture.gateway.create(&node).await.unwrap();
    ready(&fixture).await;
    ask(&fixture, "system:node:one").await;
    fixture.reconcile().await;
    assert_eq!(
        denial(&fixture).await,
        "a Node with name \"one\" and status \"Ready\" already exists in the cluster. You must delete the existing Node \
         or change the name of this new joining Node"
    );
    let kept: Secret = fixture.gateway.get(&token()).await.unwrap();
    assert!(!kept.metadata.annotations.contains_key(USED_BY_ANNOTATION));
}

/// Two replicas that both believe to lead: the claim is conditional on the version of the token.
#[tokio::test]
async fn a_claim_of_a_token_that_has_changed_fails() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    let world = fixture.world(Duration::ZERO).await;
    let patch = serde_json::json!({"metadata": {"annotations": {USED_BY_ANNOTATION: "other"}}});
    let gateway = &fixture.gateway;
    gateway.patch::<Secret>(&token(), "", patch).await.unwrap();
    let late = fixture.act(&world, &Action::Claim).await;
    assert_eq!(late.unwrap_err().reason, Reason::Conflict);
    fixture.reconcile().await;
    assert_eq!(denial(&fixture).await, "the bootstrap token was used");
}

#[tokio::test]
async fn a_token_that_has_expired_or_was_deleted_brings_in_nothing() {
    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    fixture.reconcile_after(MINUTE * 15).await;
    assert_eq!(denial(&fixture).await, "the bootstrap token has expired");

    let fixture = with_token("one").await;
    ask(&fixture, "system:node:one").await;
    let gateway = &fixture.gateway;
    let key = token();
    let deleted = gateway.delete::<Secret>(&key, Preconditions::default(), None);
    deleted.await.unwrap();
    // It may be one that is not in the cache yet.
    let waits = plan(&fixture.world(Duration::ZERO).await);
    assert!(waits.steps.is_empty() && waits.again.is_some());
    fixture.reconcile_after(LATER).await;
    assert_eq!(denial(&fixture).await, "the bootstrap token was deleted");
}

/// Returns what happens to a request of the node `one` for its client certificate, by a user with this uid.
async fn renewal(fixture: &Fixture, uid: &str) -> Vec<Action> {
    fixture
        .create(
            KUBELET_CLIENT,
            NODE_USAGES,
            &request("system:node:one", NODES),
            None,
        )
        .await;
    fixture.decide("Approved").await;
    let mut world = fixture.world(LATER).await;
    let view = std::sync::Arc::make_mut(&mut world.request);
    view.spec.username = "system:node:one".into();
    view.spec.uid = uid.into();
    plan(&world)
        .steps
        .into_iter()
        .map(|step| step.action)
        .collect()
}

#[tokio::test]
async fn a_node_renews_its_certificate_while_its_node_exists() {
    let fixture = Fixture::start(Signing::default()).await;
    let deleted = [Action::Fail("the Node \"one\" was deleted".into())];
    assert_eq!(renewal(&fixture, "").await, deleted);
    let mut node = Node::default();
    node.metadata.name = "one".into();
    let node = fixture
        .gateway
        .create(&node)
        .await
        .unwrap()
        .object()
        .unwrap();
    for (uid, is_signed) in [("", true), (&*node.metadata.uid, true), ("former", false)] {
        let fixture_of = Fixture::start(Signing::default()).await;
        let mut same = Node::default();
        same.metadata.name = "one".into();
        let created = fixture_of
            .gateway
            .create(&same)
            .await
            .unwrap()
            .object()
            .unwrap();
        let uid = if uid == node.metadata.uid {
            &created.metadata.uid
        } else {
            uid
        };
        let actions = renewal(&fixture_of, uid).await;
        let signed = matches!(&*actions, [Action::Sign(_)]);
        assert_eq!(signed, is_signed, "{uid}: {actions:?}");
        assert!(is_signed || actions == deleted);
    }
}

/// Checks V20: a serving certificate has no names but those of its node.
#[tokio::test]
async fn a_serving_certificate_is_approved_for_addresses_of_the_node() {
    for (address, user, expected) in [
        ([10, 0, 0, 1], "system:node:one", true),
        ([10, 0, 0, 2], "system:node:one", false),
        ([10, 0, 0, 1], "system:node:two", false),
    ] {
        let fixture = Fixture::start(Signing::default()).await;
        let mut node = Node::default();
        node.metadata.name = "one".into();
        let mut node = fixture
            .gateway
            .create(&node)
            .await
            .unwrap()
            .object()
            .unwrap();
        node.status.addresses = vec![NodeAddress {
            r#type: "InternalIP".into(),
            address: "10.0.0.1".into(),
        }];
        fixture.gateway.update_status(&node).await.unwrap();
        let san = Some(SanType::IpAddress(address.into()));
        let key = KeyPair::generate().unwrap();
        let pem = request_by(&key, "system:node:one", NODES, san);
        let client = fixture.gateway.acting_as(user, &[NODES]);
        let usages = ["digital signature", "server auth"];
        // A node cannot even ask for the certificate of another one.
        let asked = match user {
            "system:node:two" => &fixture.gateway,
            _ => &client,
        };
        ask_as(asked, &pem, "kubernetes.io/kubelet-serving", &usages).await;
        let actions = fixture.reconcile().await;
        let approved = actions == [Action::Approve(Approval::Serving)];
        assert_eq!(approved, expected, "{address:?} {user}: {actions:?}");
        if expected {
            fixture.reconcile().await;
            let issued = fixture.get().await.unwrap().status.certificate;
            assert_eq!(PeerIdentity::of_pem(&issued).unwrap().uid, "");
        }
    }
}
