//! Tests of the decisions about claims and volumes, which are pure.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod claim;
mod fixture;
mod provision;
mod view;
mod volume;
