//! Calls of webhooks: HTTPS servers that are asked about objects.
//!
//! ```text
//! Clients ─ by name ─▶ Client ─▶ TLS (the CA bundle, or the roots of the system) ─▶ Dialer ─▶ address of a URL or a Service
//! ```
//! A call has a deadline, which includes the wait for one of the calls that a webhook may have in flight. Its response is bounded,
//! and redirects are not followed.

mod client;
mod clients;
mod config;
mod dialer;
mod error;
mod roots;
mod service;
mod verifier;

pub(crate) use client::tls;
pub(crate) use clients::Clients;
pub(crate) use config::{Address, Config};
pub(crate) use error::{Error, cause};
