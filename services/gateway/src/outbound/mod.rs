//! Connections to servers that objects of the API name: webhooks, and the servers of APIServices.
//!
//! ```text
//! request ─▶ TLS (`tls`: a CA bundle, the roots of the system, or any certificate) ─▶ Dialer ─▶ the host of a URL, or an endpoint of a Service
//! ```

mod cause;
mod dialer;
mod pool;
mod roots;
mod service;
mod tls;
mod verifier;

pub(crate) use cause::cause;
pub(crate) use dialer::{Dialer, ServiceAddress};
pub(crate) use pool::pool;
pub(crate) use tls::{ClientCertificate, Trust, config as tls};
