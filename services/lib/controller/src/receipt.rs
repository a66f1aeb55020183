//! The results of writes.

use setpoint_model::Revision;
use setpoint_proto::{ApiError, Reason, Resource};

/// The kind and revision of a write, for the barrier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The written kind, for example `deployments.apps`; empty if nothing was written.
    pub resource: &'static str,
    /// The revision of the commit.
    pub revision: Revision,
}

impl Receipt {
    /// Returns the receipt of an action that had nothing to write.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the result of a write that has nothing left to do if its object is gone.
    ///
    /// # Errors
    /// Those of the write except `NotFound`.
    pub fn unless_gone(written: Result<Self, ApiError>) -> Result<Self, ApiError> {
        match written {
            Err(error) if error.reason == Reason::NotFound => Ok(Self::none()),
            written => written,
        }
    }

    /// Returns the receipt of the last write of an object that was read.
    pub fn of<T: Resource>(object: &T) -> Self {
        Self {
            resource: T::RESOURCE,
            revision: Revision::of(object.meta()),
        }
    }
}

/// An object as the gateway committed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The object after defaulting, with its new metadata.
    pub object: T,
    /// The revision of the commit.
    pub revision: Revision,
    pub(crate) resource: &'static str,
    /// For a Lease: the term that is current after this write.
    pub(crate) lease_term: Option<u64>,
}

impl<T> Written<T> {
    /// Returns the receipt for the barrier.
    pub const fn receipt(&self) -> Receipt {
        Receipt {
            resource: self.resource,
            revision: self.revision,
        }
    }
}
