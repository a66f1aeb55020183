//! Keys of a provider outside of the process (KMS v2).
//!
//! ```text
//! provider ──encrypts──▶ seed ──HKDF, a new info for each value──▶ key ──AES-GCM──▶ value
//! ```
//! The process makes a seed when it starts and whenever the provider has another key, and asks the provider once to
//! encrypt it. So a write asks nobody. A read asks for the seed of another process once, and keeps it.
//!
//! The provider is asked for its status each minute. Without a good answer the seed is used for three minutes more;
//! then values can no longer be sealed, as upstream. While it does not answer, what would need it fails at once.

mod client;
mod envelope;
mod provider;
mod seeds;
mod state;
#[cfg(feature = "testing")]
pub mod testing;

/// The messages and the service of the protocol.
#[allow(missing_docs, clippy::all)]
pub mod v2 {
    tonic::include_proto!("v2");
}

pub(crate) use provider::{Provider, Reports};
