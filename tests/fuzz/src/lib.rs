//! Fuzz targets: the decoders of the gateway's input, and sequences of requests.
//!
//! A target is a function of bytes that panics on a defect. `tests/fuzz/run` calls it with inputs that libFuzzer
//! generates, the test `inputs` with the stored ones.
#![allow(clippy::unwrap_used, reason = "fuzz targets may panic")]

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
mod limits;
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
