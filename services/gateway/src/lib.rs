//! The API server over etcd: gRPC for controllers and REST for kubectl, on one port.

pub mod access;
mod adapter;
mod admission;
mod agents;
mod aggregation;
mod background;
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
mod outbound;
mod peers;
pub mod registry;
mod request;
mod router;
mod server_info;
mod settings;
mod start;
mod usage;
mod webhook;

pub use adapter::{Adapter, CustomRule, ExternalRule, Settings as AdapterSettings};
pub use peers::Peers;
pub use router::router;
pub use server_info::ServerInfo;
pub use settings::Settings;
pub use start::start;

/// Runs the gateway's process.
#[tokio::main]
pub async fn main() -> std::process::ExitCode {
    setpoint_host::run("gateway", start).await
}
