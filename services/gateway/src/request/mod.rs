//! The steps before the work of a request, over HTTP and gRPC: parsing, authentication, authorization and flow control.
//!
//! ```text
//! head ─▶ RequestInfo (`info`): route, verb, query, timeout ─▶ metrics, flow control, handler
//!                     └ Attributes (`attributes`) ─▶ authorization
//! ```
//! The head of an HTTP request is parsed once. A call of gRPC names its target in its message; it has the same
//! attributes as the HTTP request that does the same.
//!
//! [`audit`] records requests, from their authentication on. [`authentication`] says whose a request is. Who may
//! impersonate others ([`impersonation`]) acts as the user whom the headers name, and is authorized as that one.

mod attributes;
pub(crate) mod audit;
pub(crate) mod authentication;
pub(crate) mod authorization;
mod expiring_cache;
pub(crate) mod flow_control;
pub(crate) mod impersonation;
mod info;
mod jwt;
pub(crate) mod legacy_token;
mod query;
mod route;
pub(crate) mod service_account;
mod timeout;
mod token_keys;

pub(crate) use attributes::{Attributes, Resource};
pub(crate) use info::RequestInfo;
pub(crate) use query::Query;
pub(crate) use route::Route;
pub(crate) use token_keys::TokenKeys;
