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
//!         &[("workers", "How many keys are worked on at once")]
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
//! The process listens on `listen` from its first moment and answers health, metrics and grpc.health there. A service
//! with an API of its own hands its router to [`Host::serve`]: same listener, same port.

mod body;
mod debug;
mod grpc;
mod health;
mod limits;
mod origin;
mod patience;
mod pieces;
pub mod probe;
mod probes;
mod process;
mod refusal;
mod request;
mod run;
pub mod serve;
pub mod settings;
mod shutdown;

/// Requests, watch events and spans are many small pieces that one thread makes and another one frees, which is what
/// glibc's allocator is slow at: it took a fifth of a busy gateway's time. Without huge pages, which would double the
/// memory of a process that rests.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Durations as people write them, for `#[serde(with = "host::duration")]`: `15s`, `300ms`, `1m 30s`.
pub use jiff::fmt::serde::unsigned_duration::friendly::compact::required as duration;

pub use health::{Check, Health};
pub use process::Host;
pub use refusal::Protocol;
pub use run::run;
pub use settings::Settings;
