//! The side of the gateway.

use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri, header::HOST};
use setpoint_proto::NODE_HEADER;

use super::{ADDRESS, Claim, Key, NONCE, PATH, PROOF};

/// A request by which the agent of a node has to prove itself.
#[derive(Debug)]
pub struct Challenge {
    key: Key,
    node: String,
    address: SocketAddr,
    nonce: String,
}

impl Challenge {
    /// Returns a challenge to the agent of a node on a new connection to this address.
    pub fn new(key: Key, node: &str, address: SocketAddr) -> Self {
        Self {
            key,
            node: node.to_owned(),
            address,
            nonce: hex::encode(rand::random::<[u8; 32]>()),
        }
    }

    /// Returns the request, without a body.
    ///
    /// # Errors
    /// If the name of the node cannot be sent.
    pub fn request(&self) -> Result<Request<()>, String> {
        let address = self.address.to_string();
        let request = Request::get(Uri::from_static(PATH))
            .header(HOST, &address)
            .header(NODE_HEADER, &self.node)
            .header(ADDRESS, &address)
            .header(NONCE, &self.nonce);
        request.body(()).map_err(|error| error.to_string())
    }

    /// Returns the session if the response proves that the agent of the node has sent it.
    ///
    /// # Errors
    /// If it does not.
    pub fn verify(self, status: StatusCode, response: &HeaderMap) -> Result<Session, String> {
        let text = |name| response.get(name).and_then(|value| value.to_str().ok());
        let connection = text(NONCE).unwrap_or_default();
        let claim = Claim::Agent {
            node: &self.node,
            address: self.address,
            gateway: &self.nonce,
            connection,
        };
        let is_proven = self.key.verify(claim, text(PROOF).unwrap_or_default());
        match status == StatusCode::OK && is_proven {
            true => Ok(Session {
                connection: connection.to_owned(),
                key: self.key,
                address: self.address,
            }),
            false => Err(format!(
                "what answers there has not proven to be the agent of node {:?} ({status})",
                self.node
            )),
        }
    }
}

/// A connection whose agent has proven itself.
#[derive(Clone, Debug)]
pub struct Session {
    key: Key,
    address: SocketAddr,
    connection: String,
}

impl Session {
    /// Adds the proof that a gateway makes the call. It is that of this connection only.
    pub fn sign<B>(&self, call: &mut Request<B>) {
        let claim = Claim::Call {
            address: self.address,
            connection: &self.connection,
            method: call.method().as_str(),
            path: call.uri().path(),
        };
        let proof = self.key.prove(claim);
        for (name, value) in [(ADDRESS, self.address.to_string()), (PROOF, proof)] {
            // An address and hexadecimal digits are ASCII.
            if let Ok(value) = HeaderValue::try_from(value) {
                call.headers_mut()
                    .insert(HeaderName::from_static(name), value);
            }
        }
    }
}
