//! Connections to servers that objects of the API name: webhooks, and the servers of APIServices. To those that
//! settings name, [`named_client`].
//!
//! ```text
//! request ─▶ TLS (`tls`: a CA bundle, the roots of the system, or any certificate) ─▶ Dialer ─▶ the host of a URL, or an endpoint of a Service
//! ```

mod calls;
mod cause;
mod dialer;
mod named;
mod pool;
mod roots;
mod service;
mod tls;
mod verifier;

pub(crate) use calls::Calls;
pub(crate) use cause::cause;
pub(crate) use dialer::{Dialer, ServiceAddress};
pub(crate) use named::{NamedClient, named_client};
pub(crate) use pool::pool;
pub(crate) use tls::{ClientCertificate, Trust, config as tls};
