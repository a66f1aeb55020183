//! Runs processes: settings, telemetry, serving, health, shutdown.
//!
//! A service's `main` is one call:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use serde::{Deserialize, Serialize};
//! use setpoint_host::{self as host, Host};
//!
//! #[derive(Default, Serialize, Deserialize)]
//! struct Settings {
//!     workers: usize,
//! }
//!
//! impl host::Settings for Settings {
//!     fn describe() -> &'static [(&'static str, &'static str)] {
//!         &[("workers", "Number of keys reconciled concurrently")]
//!     }
//! }
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
//! The process serves health, metrics and grpc.health at the address of the `listen` setting from its start. A service
//! with an API passes its router to [`Host::serve`], which serves it on the same port.

pub mod agent_auth;
mod body;
mod chunked_body;
mod connection_info;
mod debug;
mod grpc;
mod health;
pub mod http_client;
mod limits;
mod origin;
pub mod private;
pub mod probe;
mod probe_handlers;
mod process;
mod protocol;
mod request;
mod run;
pub mod secret;
pub mod serve;
pub mod settings;
mod shutdown;
mod stall_timeout;
pub mod unverified_tls;

/// Requests, watch events and spans are small allocations that one thread makes and another one frees. glibc's allocator
/// is slow at that: it took a fifth of a busy gateway's CPU time. Huge pages are off: they double the memory of an idle
/// process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durations such as `15s`, `300ms` and `1m 30s`, for `#[serde(with = "host::duration")]`.
pub use jiff::fmt::serde::unsigned_duration::friendly::compact::required as duration;

pub use health::{Check, Health};
pub use process::Host;
pub use protocol::Protocol;
pub use run::run;
pub use settings::Settings;
