//! The audit of requests: each has a record (`setpoint_audit::Record`) from its authentication to the end of its
//! response, if the policy says so.
//!
//! ```text
//! observe ─▶ authenticate ─▶ begin: policy, RequestReceived ─▶ impersonate, flow control, authorize, handle
//!    │            └ refused: ResponseStarted                        └ annotations, bodies, errors
//!    └────────────────────────────────────────────────────── response ─▶ ResponseStarted ─▶ its end: ResponseComplete
//! ```
//! The steps find the record of the request that they are part of as that of their task (`current`), as spans do: of
//! those that annotate, many know neither the request nor its transport. Without a policy there is none, and each step
//! costs one look.
//!
//! A call of gRPC is audited as the request over HTTP that does the same, once its message has been read; its
//! `requestURI` is the path of the call. Writes of the gateway's own loops are requests of `system:apiserver` without
//! an address (`own`); their reads, which are of the cache, are not recorded, and neither is the expiry of Events. A
//! request that the listener cuts off, as after its timeout, ends as one whose client has left.

mod current;
mod observe;
mod own;
mod source;

pub(crate) use setpoint_audit::Body;

pub(crate) use current::{
    annotate, begin, begin_late, current, decided, fail, has_requests, impersonated, is_recording,
    refuse, request, request_object, response, trace,
};
pub(crate) use observe::{observe, observe_call};
pub(crate) use own::{Sent, own_write};
