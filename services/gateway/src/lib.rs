//! The API over etcd: gRPC for controllers, REST for kubectl, on one port.

pub mod access;
mod background;
mod edge;
pub mod explain;
mod flow_control;
mod grpc;
mod heavy;
mod http;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod in_process;
mod kinds;
mod metrics;
mod peers;
pub mod registry;
mod settings;
mod start;

pub use edge::router;
pub use peers::Peers;
pub use settings::Settings;
pub use start::start;
