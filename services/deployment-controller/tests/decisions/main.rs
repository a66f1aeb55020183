//! What the deployment-controller decides, on a cluster that is only data.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic, and so may what it is made of"
)]

mod cluster;
mod collision;
mod numbers;
mod plan;
mod scaling;
mod status;
