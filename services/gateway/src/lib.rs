//! The API server over etcd: gRPC for controllers and REST for kubectl, on one port.

mod admission;
mod agents;
mod aggregation;
mod background;
mod computed;
mod converter;
mod dial_policy;
mod errors;
pub mod explain;
mod grpc;
mod http;
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod in_process;
mod metrics;
mod offload;
mod outbound;
mod prometheus_adapter;
pub mod registry;
mod request;
mod request_context;
mod reviews;
mod router;
mod server_info;
mod settings;
mod start;
mod usage;
pub mod verbs;
mod webhook;
mod write;

pub use dial_policy::DialPolicy;
pub use prometheus_adapter::{Adapter, CustomRule, ExternalRule, Settings as AdapterSettings};
pub use router::router;
pub use server_info::ServerInfo;
pub use settings::Settings;
pub use start::start;

/// Runs the gateway's process.
#[tokio::main]
pub async fn main() -> std::process::ExitCode {
    setpoint_host::run("gateway", start).await
}
