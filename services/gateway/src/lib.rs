//! The API over etcd: gRPC for controllers, REST for kubectl, on one port.

pub mod access;
mod edge;
mod grpc;
mod http;
mod metrics;
pub mod registry;
mod settings;
mod start;
pub mod store;

pub use edge::router;
pub use settings::Settings;
pub use start::start;
