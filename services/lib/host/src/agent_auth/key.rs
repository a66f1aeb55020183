//! The key, and what it proves.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use ring::hmac;

use crate::secret;

/// The key that gateways share with the agents of nodes.
#[derive(Clone, Debug)]
pub struct Key(hmac::Key);

/// A statement that only processes with the key can prove.
#[derive(Clone, Copy, Debug)]
pub enum Claim<'a> {
    /// An agent serves a node.
    Registration {
        /// The name of the node.
        node: &'a str,
        /// The address of the agent.
        address: SocketAddr,
    },
    /// The agent of a node answers a gateway.
    Agent {
        /// The name of the node.
        node: &'a str,
        /// The address that the gateway has dialled.
        address: SocketAddr,
        /// The nonce of the gateway.
        gateway: &'a str,
        /// The nonce of the connection.
        connection: &'a str,
    },
    /// A gateway makes a call.
    Call {
        /// The address that the gateway has dialled.
        address: SocketAddr,
        /// The nonce of the connection.
        connection: &'a str,
        /// The method of HTTP.
        method: &'a str,
        /// The path of HTTP.
        path: &'a str,
    },
}

impl Key {
    /// Reads the key in a file.
    ///
    /// # Errors
    /// If the file cannot be read, or has fewer than 16 characters.
    pub fn read(path: &Path) -> io::Result<Self> {
        secret::read(path).map(|secret| Self::new(&secret))
    }

    /// Reads the key in a file. If there is no file, makes one with a random key.
    ///
    /// # Errors
    /// If the file can neither be read nor made.
    pub fn read_or_create(path: &Path) -> io::Result<Self> {
        secret::read_or_create(path).map(|secret| Self::new(&secret))
    }

    pub(super) fn new(secret: &str) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()))
    }

    /// Returns the proof of a claim, in hexadecimal digits.
    pub fn prove(&self, claim: Claim<'_>) -> String {
        hex::encode(hmac::sign(&self.0, &claim.encode()))
    }

    /// Returns whether `proof` is that of the claim, in a time that does not tell how much of it is right.
    pub fn verify(&self, claim: Claim<'_>, proof: &str) -> bool {
        let proof = hex::decode(proof).unwrap_or_default();
        hmac::verify(&self.0, &claim.encode(), &proof).is_ok()
    }
}

impl Claim<'_> {
    /// Returns the kind of the claim and its parts, each with its length: no two claims have the same encoding.
    fn encode(self) -> Vec<u8> {
        match self {
            Self::Registration { node, address } => {
                concat(&["registration", node, &address.to_string()])
            }
            Self::Agent {
                node,
                address,
                gateway,
                connection,
            } => concat(&["agent", node, &address.to_string(), gateway, connection]),
            Self::Call {
                address,
                connection,
                method,
                path,
            } => concat(&["call", &address.to_string(), connection, method, path]),
        }
    }
}

fn concat(parts: &[&str]) -> Vec<u8> {
    let with_length = |part: &&str| [&part.len().to_be_bytes(), part.as_bytes()].concat();
    parts.iter().flat_map(with_length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Vec<Claim<'static>> {
        let [one, other] = [([127, 0, 0, 1], 1).into(), ([127, 0, 0, 2], 1).into()];
        let registration = |node, address| Claim::Registration { node, address };
        let agent = |gateway, connection| Claim::Agent {
            node: "n",
            address: one,
            gateway,
            connection,
        };
        let call = |connection, method, path| Claim::Call {
            address: one,
            connection,
            method,
            path,
        };
        vec![
            registration("n", one),
            registration("m", one),
            registration("n", other),
            agent("a", "b"),
            agent("ab", ""),
            agent("b", "a"),
            call("b", "POST", "/"),
            call("a", "POST", "/"),
            call("b", "GET", "/"),
            call("b", "POST", "/a"),
        ]
    }

    /// Checks DG6.
    #[test]
    fn a_proof_is_that_of_one_claim_by_one_key() {
        let (key, other) = (Key::new("0123456789abcdef"), Key::new("0123456789abcdeF"));
        for (index, claim) in claims().into_iter().enumerate() {
            let proof = key.prove(claim);
            assert!(!other.verify(claim, &proof));
            for (also, one) in claims().into_iter().enumerate() {
                assert_eq!(key.verify(one, &proof), also == index, "{claim:?} {one:?}");
            }
            for wrong in ["", "no", &proof[2..], &proof[1..], &format!("{proof}00")] {
                assert!(!key.verify(claim, wrong), "{wrong}");
            }
        }
    }
}
