//! The configuration files of the API server (`apiserver.config.k8s.io`), without I/O.
//!
//! ```text
//! text ─▶ document (strict) ─▶ validation, in upstream's words ─▶ configuration, with its expressions compiled
//! ```
//! * [`authentication`]: issuers of tokens, and the users that their claims become.
//! * [`authorization`]: authorizers in their order, and the conditions under which a webhook is asked.

pub mod authentication;
pub mod authorization;
mod document;
mod schema;
