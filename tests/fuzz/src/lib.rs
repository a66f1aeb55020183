//! Fuzz targets: every decoder at the edge of the gateway, and sequences of requests to it.
//!
//! A target is a function of bytes that panics on a defect. `tests/fuzz/run` calls it with bytes that libFuzzer
//! makes up, the test `inputs` with those that are kept.
#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests: what is not as it should be is a failure"
)]

mod body;
mod continue_token;
mod dry;
mod edit;
mod envelope;
mod example;
mod field_selector;
mod gateway;
mod grpc;
mod headers;
mod json;
mod label_selector;
mod object;
mod patch;
mod protobuf;
mod quantity;
mod query;
mod sequence;
mod stretch;
mod target;
mod time;
mod traceparent;

pub use target::{Target, names, target};
