//! What a write leaves in the hands of the writer.

use setpoint_model::Revision;

/// The proof of a write: until the caches have reached it, they are older than it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The written kind, for example `deployments.apps`; empty if nothing was written.
    pub resource: &'static str,
    /// When it was committed.
    pub revision: Revision,
}

impl Receipt {
    /// Nothing needed to be written.
    pub fn none() -> Self {
        Self::default()
    }
}

/// An object as the gateway committed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The object after defaulting, with its new metadata.
    pub object: T,
    /// When it was committed.
    pub revision: Revision,
    pub(crate) resource: &'static str,
    /// Of a Lease: the term that stands with this write.
    pub(crate) lease_term: Option<u64>,
}

impl<T> Written<T> {
    /// What to hand to the barrier.
    pub const fn receipt(&self) -> Receipt {
        Receipt {
            resource: self.resource,
            revision: self.revision,
        }
    }
}
