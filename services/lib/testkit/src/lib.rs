//! Shared by the tests of all crates: free ports, a real etcd, a real Prometheus with an exporter, a registry of images.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate: a panic is a failed test"
)]

mod etcd;
mod exporter;
mod freeze;
mod image_registry;
mod port;
mod prometheus;

pub use etcd::Etcd;
pub use exporter::Exporter;
pub use image_registry::ImageRegistry;
pub use port::free_port;
pub use prometheus::Prometheus;
