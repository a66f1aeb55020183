//! Approves, signs and removes CertificateSigningRequests (upstream: the controllers csrapproving, csrsigning and
//! csrcleaner).
//!
//! ```text
//!          ┌─ of a kubelet's client, and allowed ─▶ Approved ┐
//! pending ─┤                                                 ├─▶ certificate ─▶ removed after 1 h, or when it has expired
//!          └─ kubectl certificate approve ──────────▶ Approved ┘
//!          └─ kubectl certificate deny ─▶ Denied ─▶ removed after 1 h              (pending for 24 h: removed)
//! ```
//! A request that its signer does not allow gets the condition `Failed`. Certificates for
//! `kubernetes.io/legacy-unknown` are signed if somebody approves them, and never approved here.

mod act;
mod authority;
mod certificate;
mod cleanup;
mod names;
mod pem;
mod plan;
mod reconciler;
mod request;
mod settings;
mod signer;
mod view;

pub use authority::Authority;
pub use plan::{Action, World, plan};
pub use reconciler::{CONTROLLER, Requests};
pub use request::Request;
pub use settings::Signing;
pub use signer::Signer;
pub use view::RequestView;
