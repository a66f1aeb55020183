//! Connections between the gateway and an agent over TLS.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures::FutureExt as _;
use http::StatusCode;
use setpoint_tls::Credentials;
use setpoint_tls::authority::{Authority, Leaf, Usage};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::agent::node;
use super::{POD, Plane};

/// The identities of a gateway and of the agent that it connects to.
pub struct Identities {
    pub gateway: Credentials,
    pub agent: Credentials,
}

impl Identities {
    /// Returns those of a gateway, and of an agent with this certificate.
    fn new(authority: &Authority, agent: [&str; 3]) -> Self {
        let gateway = ["system:setpoint:gateway", "system:setpoint", "gateway"];
        Self {
            gateway: credentials(authority, gateway),
            agent: credentials(authority, agent),
        }
    }
}

fn credentials(authority: &Authority, identity: [&str; 3]) -> Credentials {
    let issued = authority.issue(&leaf(identity)).unwrap();
    issued.credentials().unwrap()
}

fn leaf([user, group, host]: [&str; 3]) -> Leaf {
    Leaf {
        name: user.to_owned(),
        groups: vec![group.to_owned()],
        hosts: vec![host.to_owned()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(600),
    }
}

fn page() -> Router {
    Router::new().route("/stats/summary", get(|| async { "summary" }))
}

const PAGE: &str = "/api/v1/nodes/n/proxy/stats/summary";

#[tokio::test]
async fn a_gateway_reaches_the_agent_whose_certificate_is_that_of_the_node() {
    let authority = Authority::create("ca").unwrap();
    let agent = ["system:node:n", "system:nodes", "node-agent"];
    let plane = Plane::secured(Identities::new(&authority, agent), page()).await;
    let exec = format!("{POD}/exec?command=echo&command=hello&stdout=true");
    let mut socket = plane.socket(&exec, "v4.channel.k8s.io").await;
    assert_eq!(socket.rest(1).await.0, "hello");
    plane.agent.idle().await;
    let page = plane.api.get(PAGE).await;
    assert_eq!(page.body, "summary");
}

/// Checks DG6: neither another node's agent nor a service of the cluster is taken for the node's agent, nor is one with
/// a certificate by another CA.
#[tokio::test]
async fn a_gateway_does_not_speak_to_what_has_no_certificate_of_the_nodes_agent() {
    let [authority, other] = ["ca", "other"].map(|name| Authority::create(name).unwrap());
    let own = ["system:node:n", "system:nodes", "node-agent"];
    let mut stranger = Identities::new(&authority, own);
    stranger.agent = credentials(&other, own);
    for wrong in [
        Identities::new(&authority, ["system:node:m", "system:nodes", "node-agent"]),
        Identities::new(
            &authority,
            ["system:setpoint:scheduler", "system:setpoint", "node-agent"],
        ),
        Identities::new(&authority, ["system:node:n", "system:nodes", "n"]),
        stranger,
    ] {
        let plane = Plane::secured(wrong, page()).await;
        let exec = format!("{POD}/exec?command=echo&stdout=true");
        let refused = plane.open(&exec, "v4.channel.k8s.io").await.err();
        let status = refused.expect("it is refused").status();
        assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(plane.agent.opened().is_empty());
        assert_ne!(plane.api.get(PAGE).await.code, StatusCode::OK);
    }
}

/// Returns a gateway that knows the signers' CA, and an agent with a certificate by `issuer`, which knows gateways.
fn by_signers(signers: &Authority, issuer: &Authority, agent: [&str; 3]) -> Identities {
    let authority = Authority::create("ca").unwrap();
    let gateway = ["system:setpoint:gateway", "system:setpoint", "gateway"];
    let gateway = credentials(&authority, gateway);
    gateway.also_know_clients_by(signers.certificate()).unwrap();
    let issued = issuer.issue(&leaf(agent)).unwrap();
    let agent = Credentials::from_pem(authority.certificate(), &issued.certificate, &issued.key);
    Identities {
        gateway,
        agent: agent.unwrap(),
    }
}

#[tokio::test]
async fn an_agent_may_have_a_certificate_by_the_signers_for_its_address() {
    let signers = Authority::create("signers").unwrap();
    let own = ["system:node:n", "system:nodes", "127.0.0.1"];
    let plane = Plane::secured(by_signers(&signers, &signers, own), page()).await;
    let exec = format!("{POD}/exec?command=echo&command=hello&stdout=true");
    let mut socket = plane.socket(&exec, "v4.channel.k8s.io").await;
    assert_eq!(socket.rest(1).await.0, "hello");
    plane.agent.idle().await;
    assert_eq!(plane.api.get(PAGE).await.body, "summary");
}

/// Checks V20 and DG6: what the signers issue passes for the agent of its own node, at its own address, and for nothing
/// else.
#[tokio::test]
async fn a_certificate_by_the_signers_is_good_for_one_node_at_one_address() {
    let signers = Authority::create("signers").unwrap();
    let simulated = "system:setpoint:simulated-nodes";
    let agents = [
        ["system:node:m", "system:nodes", "127.0.0.1"],
        ["system:node:n", "system:nodes", "127.0.0.2"],
        ["system:node:n", "system:nodes", "node-agent"],
        ["system:node:n", "system:masters", "127.0.0.1"],
        [&format!("{simulated}:n"), simulated, "127.0.0.1"],
        ["system:setpoint:gateway", "system:setpoint", "127.0.0.1"],
    ];
    for agent in agents {
        let plane = Plane::secured(by_signers(&signers, &signers, agent), page()).await;
        plane.api.get(PAGE).await.refused(503, "ServiceUnavailable");
        assert!(plane.agent.opened().is_empty(), "{agent:?}");
    }
    let own = ["system:node:n", "system:nodes", "127.0.0.1"];
    let other = Authority::create("signers").unwrap();
    let unknown = by_signers(&signers, &other, own);
    let plane = Plane::secured(unknown, page()).await;
    plane.api.get(PAGE).await.refused(503, "ServiceUnavailable");
}

/// Checks V4, DG5 and DG6: a Node may declare any address, also one of the loopback, and what listens there without the
/// certificate of the node's agent gets a handshake and nothing more.
#[tokio::test]
async fn an_impostor_at_the_address_of_an_agent_gets_neither_the_key_nor_a_request() {
    let authority = Authority::create("ca").unwrap();
    let own = ["system:node:n", "system:nodes", "node-agent"];
    let plane = Plane::secured(Identities::new(&authority, own), page()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = AbortOnDropHandle::new(tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut sent = vec![0; 8192];
        let read = stream.read(&mut sent).await.unwrap();
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await;
        let more = stream.read(&mut sent[read..]).await.unwrap_or_default();
        sent.truncate(read + more);
        (sent, listener)
    }));
    plane
        .api
        .post("/api/v1/nodes", node("m", address))
        .await
        .ok();
    let refused = plane
        .api
        .get("/api/v1/nodes/m/proxy/stats/summary?mine")
        .await;
    refused.refused(503, "ServiceUnavailable");
    let (sent, listener) = serving.await.unwrap();
    // A record of a handshake, with the names of the client's protocols, and perhaps an alert.
    assert_eq!(sent.first(), Some(&0x16));
    let text = String::from_utf8_lossy(&sent).to_lowercase();
    for part in ["authorization", "summary", "mine", "get /"] {
        assert!(!text.contains(part), "{text}");
    }
    // Nor is another node's agent one of this node, at the address where the other one is.
    plane
        .api
        .post("/api/v1/nodes", node("o", plane.agent.address))
        .await
        .ok();
    let other = plane.api.get("/api/v1/nodes/o/proxy/stats/summary").await;
    other.refused(503, "ServiceUnavailable");
    assert!(listener.accept().now_or_never().is_none());
}
