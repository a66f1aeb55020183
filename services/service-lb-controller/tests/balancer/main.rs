//! Tests of the service-lb-controller.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod acts;
mod plans;
mod properties;
mod scene;
