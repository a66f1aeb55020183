//! The steps before the work of a request, over HTTP and gRPC: parsing, authentication, authorization and flow control.
//!
//! ```text
//! head ─▶ RequestInfo (`info`): route, verb, query, timeout ─▶ metrics, flow control, handler
//!                     └ Attributes (`attributes`) ─▶ authorization
//! ```
//! The head of an HTTP request is parsed once. A call of gRPC names its target in its message; it has the same
//! attributes as the HTTP request that does the same.
//!
//! A request without credentials is one of the administrator: the listener is on loopback. One with a token of a
//! ServiceAccount is one of that account; any other `Authorization` is refused. Who may impersonate others acts as the
//! user whom the headers name.

mod attributes;
pub(crate) mod authentication;
pub(crate) mod authorization;
pub(crate) mod flow_control;
mod impersonation;
mod info;
mod jwt;
mod query;
mod route;
pub(crate) mod service_account;
mod timeout;
mod token_keys;
mod websocket_token;

pub(crate) use attributes::{Attributes, Resource};
pub(crate) use info::RequestInfo;
pub(crate) use query::Query;
pub(crate) use route::Route;
pub(crate) use token_keys::TokenKeys;
