//! Deletes the content of namespaces that are being deleted.
//!
//! ```text
//! namespace is deleted ─▶ its Pods are deleted ─▶ everything else is ─▶ conditions say so ─▶ the finalizer `kubernetes` is removed
//! ```
//!
//! The content is read from the gateway, of all kinds at once, when a namespace is reconciled: most namespaces are
//! never deleted, so a cache of all objects would cost more than these reads. Nothing can be created in a namespace
//! that is being deleted, so that a list of its content is complete. What other API servers have in it is not deleted,
//! but as long as one of them does not answer, the namespace waits and says so, as upstream.

mod act;
mod content;
mod discovery;
mod plan;
mod reconciler;
mod status;

pub use content::{Content, Failure, Item};
pub use plan::{Action, BURST, World, plan};
pub use reconciler::{CONTROLLER, Namespaces, controller};
pub use status::status;
