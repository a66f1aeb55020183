//! TLS to agents, whose certificates say which nodes they speak for.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use setpoint_model::users::{
    NODE_PREFIX, NODES, SIMULATED_NODES, SIMULATED_NODES_PREFIX, is_simulated_node,
};
use setpoint_tls::{ClientStream, Credentials, PeerIdentity};
use tokio::net::TcpStream;

/// The name on the certificates of all agents.
const SERVER_NAME: &str = "node-agent";

/// The protocol of a connection to an agent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

impl Protocol {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
        }
    }
}

/// Begins TLS with the agent of one of these nodes at an address. Its certificate is by the CA of servers, with the
/// name of all agents; or by the signers of CertificateSigningRequests, for this address and the node alone.
///
/// # Errors
/// If what answers has no certificate of this agent.
pub(super) async fn secure(
    credentials: &Credentials,
    protocol: Protocol,
    nodes: &[String],
    (address, stream): (IpAddr, TcpStream),
) -> Result<ClientStream<TcpStream>, String> {
    let name = ServerName::try_from(SERVER_NAME).map_err(|error| error.to_string())?;
    let dialed = nodes.to_vec();
    let accepts = move |subject: &PeerIdentity| dialed.iter().any(|node| is_node(subject, node));
    let mut config = credentials.client_of_agent(address, accepts);
    config.alpn_protocols = protocol.names();
    let secured = ClientStream::handshake(Arc::new(config), name, stream).await;
    let secured = secured.map_err(|error| error.to_string())?;
    let is_agent = |subject: &PeerIdentity| nodes.iter().any(|node| speaks_for(subject, node));
    match secured.server()?.filter(is_agent) {
        Some(_) => Ok(secured),
        None => Err("the certificate there is not one of the node's agent".to_owned()),
    }
}

/// Returns whether the subject of a certificate is the agent of a node.
fn speaks_for(agent: &PeerIdentity, node: &str) -> bool {
    let is_simulated = || {
        let prefix = agent.name.strip_prefix(SIMULATED_NODES_PREFIX);
        prefix.is_some_and(|prefix| is_simulated_node(prefix, node))
            && agent.groups.iter().any(|group| group == SIMULATED_NODES)
    };
    is_node(agent, node) || is_simulated()
}

/// Returns whether the subject of a certificate is a node.
fn is_node(agent: &PeerIdentity, node: &str) -> bool {
    agent.name.strip_prefix(NODE_PREFIX) == Some(node)
        && agent.groups.iter().any(|group| group == NODES)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn agent(name: &str, group: &str) -> PeerIdentity {
        PeerIdentity {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            uid: String::new(),
            fingerprint: String::new(),
            not_after: Timestamp::MAX,
        }
    }

    /// Checks DG6: a certificate of another node's agent, or of a service, does not do.
    #[test]
    fn an_agent_speaks_for_the_nodes_that_its_certificate_names() {
        let node = agent("system:node:a", NODES);
        assert!(speaks_for(&node, "a"));
        assert!(!speaks_for(&node, "b"));
        assert!(!speaks_for(&node, "a-1"));
        let simulated = agent("system:setpoint:simulated-nodes:sim", SIMULATED_NODES);
        assert!(speaks_for(&simulated, "sim-0"));
        assert!(speaks_for(&simulated, "sim-12"));
        for other in ["sim", "sim-", "sim-x", "sim-1-2", "simulated-1", "a"] {
            assert!(!speaks_for(&simulated, other), "{other}");
        }
        for (name, group) in [
            ("system:node:a", "system:setpoint"),
            ("system:setpoint:simulated-nodes:a", NODES),
            ("system:setpoint:scheduler", "system:setpoint"),
        ] {
            let other = agent(name, group);
            assert!(
                !speaks_for(&other, "a") && !speaks_for(&other, "a-0"),
                "{name}"
            );
        }
    }
}
