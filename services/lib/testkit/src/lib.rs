//! What tests share: an in-memory store, a gateway in this process, contract suites, builders.
#![allow(
    clippy::unwrap_used,
    reason = "all of this is tests: what is not as it should be is a failure"
)]

pub mod cache_contract;
mod cases;
mod etcd;
mod image_registry;
mod in_process;
mod lagging;
pub mod objects;
mod port;
mod store;
pub mod store_contract;

pub use cases::Subject;
pub use etcd::Etcd;
pub use image_registry::ImageRegistry;
pub use in_process::{InProcess, serve_gateway};
pub use lagging::Lagging;
pub use port::free_port;
pub use store::Memory;
