//! Runs processes: settings, telemetry, serving, health, shutdown.
//!
//! A service's `main` is one call:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use setpoint_host::{self as host, Host};
//!
//! #[derive(Default, Serialize, Deserialize, JsonSchema)]
//! struct Settings {
//!     /// Number of keys that are reconciled concurrently.
//!     workers: usize,
//! }
//!
//! impl host::Settings for Settings {}
//!
//! #[tokio::main(worker_threads = 2)]
//! async fn main() -> ExitCode {
//!     host::run("demo", start).await
//! }
//!
//! async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
//!     let informers = host.health().check("informers");
//!     // … once they are synced:
//!     informers.pass();
//!     host.shutdown().cancelled().await;
//!     Ok(())
//! }
//! ```
//!
//! The one port speaks TLS with the identity of the process, which is the table `tls` of its settings. The process
//! serves health, metrics and grpc.health at the address of the `listen` setting from its start. A service
//! with an API passes its router to [`Host::serve`], which serves it on the same port.

mod body;
pub mod certificates;
mod chunked_body;
mod connection;
mod connection_info;
mod debug;
mod duration_text;
pub mod gateways_only;
mod grpc;
mod handshake;
mod health;
pub mod http_client;
mod limits;
mod monitoring;
mod origin;
pub mod private;
pub mod probe;
mod probe_handlers;
mod process;
mod protocol;
mod request;
mod run;
pub mod serve;
pub mod settings;
mod shutdown;
mod stall_timeout;
pub mod unverified_tls;

/// Requests, watch events and spans are small allocations that one thread makes and another one frees. glibc's
/// allocator is slow at that: it took a fifth of a busy gateway's CPU time. Huge pages are off: they double the memory
/// of an idle process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub use duration_text::DurationText;
pub use health::{Check, Health};
pub use probe_handlers::metrics;
pub use process::Host;
pub use protocol::Protocol;
pub use run::{run, run_with};
pub use settings::Settings;
