//! Tests of the decisions of the horizontalpodautoscaler-controller, which are pure.
#![expect(clippy::unwrap_used, reason = "tests may panic")]
#![expect(clippy::type_complexity, reason = "rows of tables are tuples")]

mod calculator;
mod decision;
mod failures;
mod fixture;
mod limits;
mod metrics;
mod pod;
mod properties;
mod simulation;
mod status;
