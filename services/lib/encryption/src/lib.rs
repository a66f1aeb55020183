//! Encryption of stored values, as Kubernetes has it.
//!
//! ```text
//! EncryptionConfiguration ─▶ Encryption ─ for each resource a Transformer: its providers in order
//!                                            the first one seals, each may open
//! ```
//! A value that is encrypted begins with the name of what has sealed it (`k8s:enc:aesgcm:v1:<key>:`), so that tools of
//! Kubernetes can read it, and we what Kubernetes has written. A value that another provider than the first one has
//! sealed, or none, is [stale](Opened::stale): the next write of its object seals it anew.
//!
//! A value that cannot be opened is an [`Error`], never another value, and nobody may take its object for one that
//! does not exist.

mod cbc;
mod configuration;
mod encryption;
mod error;
mod gcm;
pub mod kms;
mod metrics;
mod resources;
mod secretbox;
mod transformer;
mod validation;

pub use configuration::Configuration;
pub use encryption::Encryption;
pub use error::Error;
pub use metrics::reloaded;
pub use transformer::{ENCRYPTED, Opened};
