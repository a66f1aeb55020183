//! Credentials of processes: a certificate with its key and the CA that is trusted, read from files and followed while
//! the process runs; the identities of clients; and certificate authorities.
//!
//! A process has one identity ([`Files`], [`Credentials`]) for its listener and for its own connections.
//! [`Credentials::server`] and [`Credentials::client`] are made once; each handshake uses what the files hold at the
//! time, so certificates and CAs are renewed without a restart, and open connections go on.
//!
//! A process whose certificates are made by CertificateSigningRequests serves with another one than it connects with
//! ([`ServingFiles`]), and such an agent is accepted by [`Credentials::client_of_agent`] alone.
//!
//! As in Kubernetes' API server, a handshake succeeds with any client certificate whose key the client has, or with
//! none. [`Credentials::identify`] then says whose it is, or why it is not accepted. Clients are known by the CAs that
//! are trusted for servers, unless [`Credentials::know_clients_by`] names others.

mod agent_verifier;
pub mod authority;
mod client_authorities;
mod client_stream;
mod credentials;
mod current;
mod error;
mod files;
mod follower;
mod identity;
mod material;
mod pin;
mod signing_request;
#[cfg(test)]
mod tests;
pub mod x509;

pub use client_stream::ClientStream;
pub use credentials::Credentials;
pub use error::Error;
pub use files::{Files, ServingFiles};
pub use identity::{PeerIdentity, USER_ID};
pub use material::Validity;
pub use pin::{Pin, Pinned};
pub use signing_request::SigningRequest;
