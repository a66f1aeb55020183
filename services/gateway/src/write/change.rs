//! A change of a stored object, and the request that policies and webhooks see it as.

use setpoint_codec::Object;
use setpoint_proto::meta::DeleteOptions;

use crate::admission::Operation;
use crate::registry::Target;
use crate::write::conversion::Ownership;

/// A change of an object.
pub(crate) struct Change<'a> {
    /// The object of the request, if `mutate` needs it.
    pub sent: Option<Box<dyn Object>>,
    /// The size of the request, which `mutate` processes besides the object.
    pub bytes: usize,
    pub ownership: Ownership,
    /// Whether the result of `mutate` has to be validated as an update.
    pub validates: bool,
    /// `None` for a part of a request that was admitted as a whole.
    pub admission: Option<Request<'a>>,
}

/// The request that policies and webhooks see.
pub(crate) struct Request<'a> {
    pub operation: Operation,
    pub target: &'a Target,
    /// The options of a deletion.
    pub options: Option<&'a DeleteOptions>,
}

impl<'a> Change<'a> {
    /// Returns an update of a target.
    pub(crate) fn update(target: &'a Target, bytes: usize) -> Self {
        Self {
            sent: None,
            bytes,
            ownership: Ownership::Taken,
            validates: true,
            admission: Some(Request {
                operation: Operation::Update,
                target,
                options: None,
            }),
        }
    }

    /// Returns a part of a request that was admitted.
    pub(crate) fn admitted() -> Self {
        Self {
            sent: None,
            bytes: 0,
            ownership: Ownership::Taken,
            validates: false,
            admission: None,
        }
    }
}
