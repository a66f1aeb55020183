//! Admission webhooks: HTTPS servers that accept, reject or change requests.
//!
//! ```text
//! configurations (`configuration`) ─▶ does a webhook match the request (`matching`)
//!   ─▶ AdmissionReview, and its response (`review`, `call`)
//!   ─▶ the patched object (`mutating`), or the first denial (`validating`)
//! ```
//! A call has the deadline of its webhook, and the client bounds the number of calls in flight.

mod annotations;
mod call;
mod configuration;
mod failure;
mod matching;
mod mutating;
mod review;
mod validating;

pub(super) use configuration::Configuration;
pub(super) use failure::internal;
pub(super) use mutating::{Pass, mutate};
pub(super) use validating::validate;
