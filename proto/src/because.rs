//! The cascade that a call belongs to, as the call's own message says it.
//!
//! Others tell us of theirs as W3C has it, by the header `traceparent`. We chose a field over headers for our own calls,
//! since each call's differ: HTTP/2 spells such headers out letter by letter, which was more than a quarter of what tracing
//! cost. It would be wrong if somebody between our services were to draw spans, too: they would not see the trace.

pub use crate::messages::setpoint::v1::Because;
use crate::messages::setpoint::v1::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, PatchRequest, UpdateRequest,
    WatchRequest,
};

/// A request that says which cascade it belongs to.
pub trait Belonging {
    /// Where it says so.
    fn because(&mut self) -> &mut Option<Because>;
}

macro_rules! belonging {
    ($($request:ty),*) => {$(
        impl Belonging for $request {
            fn because(&mut self) -> &mut Option<Because> {
                &mut self.because
            }
        }
    )*};
}

belonging!(
    GetRequest,
    ListRequest,
    CreateRequest,
    UpdateRequest,
    PatchRequest,
    DeleteRequest,
    WatchRequest
);
