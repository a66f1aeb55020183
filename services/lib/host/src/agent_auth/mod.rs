//! The mutual authentication of gateways and node agents, by a key that they share and never send.
//!
//! A gateway connects only to addresses that an agent has proven: an agent adds the proof [`Claim::Registration`] to
//! its Node, as the annotation [`ANNOTATION`]. On each connection both prove themselves again, the agent first:
//!
//! ```text
//! gateway                                              agent
//!    │ GET /setpoint/agent: node, address, nonce g        │
//!    ├───────────────────────────────────────────────────▶│ Is it its node, and its address?
//!    │            nonce a of the connection, Claim::Agent │
//!    │◀───────────────────────────────────────────────────┤
//!    │ a call: address, Claim::Call                       │
//!    ├───────────────────────────────────────────────────▶│ Is it of this connection, this address, and this call?
//! ```
//!
//! A proof is of no use on another connection, and a relay at another address cannot pass one on: the claims name the
//! address that the gateway has dialled. Neither the content of calls nor that of responses is protected: without TLS,
//! those who can change the traffic between the two can change it.

mod challenge;
mod guard;
mod key;

pub use challenge::{Challenge, Session};
pub use guard::Guard;
pub use key::{Claim, Key};

/// The annotation of a Node with the proof of its agent's address.
pub const ANNOTATION: &str = "setpoint.dev/agent-proof";

/// The path at which an agent proves itself.
const PATH: &str = "/setpoint/agent";
/// The header with the address that the gateway has dialled.
const ADDRESS: &str = "setpoint-agent-address";
/// The header with a nonce: in a request that of the gateway, in a response that of the connection.
const NONCE: &str = "setpoint-agent-nonce";
/// The header with a proof.
const PROOF: &str = "setpoint-agent-proof";
