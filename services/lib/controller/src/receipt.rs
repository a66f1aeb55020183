//! The results of writes.

use std::marker::PhantomData;

use setpoint_model::Revision;
use setpoint_proto::{ApiError, Reason, Resource, setpoint};

use crate::client::{parse, unpack};

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
    /// The errors of the write except `NotFound`.
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

/// The response to a write. Most writers need the revision only, so the object stays encoded.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The revision of the commit.
    pub revision: Revision,
    response: setpoint::Object,
    of: PhantomData<T>,
}

impl<T: Resource> Written<T> {
    /// # Errors
    /// `InternalError` if the response has no revision.
    pub(crate) fn new(response: setpoint::Object) -> Result<Self, ApiError> {
        Ok(Self {
            revision: parse(&response.revision)?,
            response,
            of: PhantomData,
        })
    }

    /// Decodes the object as the gateway committed it: after defaulting, and with its new metadata.
    ///
    /// # Errors
    /// If the response has no such object.
    pub fn object(&self) -> Result<T, ApiError> {
        unpack(&self.response)
    }

    /// Returns the receipt for the barrier.
    pub const fn receipt(&self) -> Receipt {
        Receipt {
            resource: T::RESOURCE,
            revision: self.revision,
        }
    }

    /// Returns, for a Lease, the term that is current after this write.
    pub(crate) fn lease_term(&self) -> Option<u64> {
        self.response.cause.as_ref()?.lease_term
    }
}
