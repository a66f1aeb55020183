//! What precedes the work of a request, over HTTP and gRPC: what it asks for, and whether its user may.
//!
//! ```text
//! head ─▶ RequestInfo (`info`): route, verb, query, timeout ─▶ metrics, flow control, handler
//!                     └ Attributes (`attributes`) ─▶ authorization
//! ```
//! The head of an HTTP request is parsed once. A call of gRPC names its target in its message; it has the same attributes as
//! the HTTP request that does the same.

mod attributes;
pub(crate) mod authorization;
mod info;
mod query;
mod route;
mod timeout;

pub(crate) use attributes::{Attributes, Resource};
pub(crate) use info::RequestInfo;
pub(crate) use query::Query;
pub(crate) use route::Route;
