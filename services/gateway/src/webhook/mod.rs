//! Calls of webhooks: HTTPS servers that are asked about objects.
//!
//! ```text
//! Clients ─ by name ─▶ Client ─▶ TLS and the address of a URL or a Service (`crate::outbound`)
//! ```
//! A call has a deadline, which includes the wait for one of the calls that a webhook may have in flight. Its response
//! is bounded, and redirects are not followed.

mod client;
mod clients;
mod config;
mod error;

pub(crate) use clients::Clients;
pub(crate) use config::Config;
pub(crate) use error::Error;
