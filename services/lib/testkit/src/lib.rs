//! What tests share: an in-memory store, a gateway in this process, contract suites, builders.

pub mod cache_contract;
mod cases;
mod etcd;
mod lagging;
pub mod objects;
mod store;
pub mod store_contract;

pub use cases::Subject;
pub use etcd::Etcd;
pub use lagging::Lagging;
pub use store::Memory;
