//! Tests of the Pod security standards.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod baseline;
mod cases;
mod configuration;
mod labels;
mod restricted;
