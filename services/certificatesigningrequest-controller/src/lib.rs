//! Approves, signs and removes CertificateSigningRequests (upstream: the controllers csrapproving, csrsigning and
//! csrcleaner).
//!
//! ```text
//!          ┌─ of a kubelet, and allowed ──────────▶ Approved ┐
//! pending ─┤                                                 ├─▶ certificate ─▶ removed after 1 h, or when it has expired
//!          └─ kubectl certificate approve ──────────▶ Approved ┘
//!          └─ kubectl certificate deny ─▶ Denied ─▶ removed after 1 h              (pending for 24 h: removed)
//! ```
//! Three kinds of requests are approved without a person: client certificates of nodes as upstream does it, by roles of
//! the user; the client certificate of the node that a bootstrap token was made for (`joining.rs`); and serving
//! certificates of nodes for their own addresses (`serving.rs`).
//!
//! The client certificate of a node has the UID of its Node in its subject, and the Node is created before it: gateways
//! accept it only while there is that Node. A Node that was deleted does not come back by itself.
//!
//! A request that its signer does not allow gets the condition `Failed`. Certificates for
//! `kubernetes.io/legacy-unknown` are signed if somebody approves them, and never approved here.

mod act;
mod authority;
mod certificate;
mod cleanup;
mod joining;
mod names;
mod node;
mod pem;
mod plan;
mod reconciler;
mod request;
mod serving;
mod settings;
mod signer;
mod token;
mod view;

pub use authority::Authority;
pub use node::NodeView;
pub use plan::{Action, Approval, World, plan};
pub use reconciler::{CONTROLLER, Informers, Requests};
pub use request::Request;
pub use settings::Signing;
pub use signer::Signer;
pub use token::TokenView;
pub use view::RequestView;
