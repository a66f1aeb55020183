//! Shared by the tests of all crates: free ports, a real etcd, a registry of images.
#![allow(
    clippy::unwrap_used,
    reason = "only tests use this crate: a panic is a failed test"
)]

mod etcd;
mod image_registry;
mod port;

pub use etcd::Etcd;
pub use image_registry::ImageRegistry;
pub use port::free_port;
