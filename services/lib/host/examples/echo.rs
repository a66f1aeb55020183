//! A service without an API, which the tests of processes run.

use std::process::ExitCode;

use opentelemetry::trace::SpanBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::{self as host, Host};
use setpoint_telemetry::Span;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Settings {
    /// Fail at start.
    fail: bool,
    /// Ignore the shutdown token.
    hang: bool,
    /// Whether the check passes.
    ready: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            fail: false,
            hang: false,
            ready: true,
        }
    }
}

impl host::Settings for Settings {}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run("echo", start).await
}

async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    anyhow::ensure!(!settings.fail, "told to fail");
    let check = host.health().check("echo");
    if settings.ready {
        check.pass();
    }
    let act = Span::start(SpanBuilder::from_name("act"), None);
    act.in_scope(async { tracing::info!("acted") }).await;
    drop(act);
    tracing::info_span!(target: "setpoint_echo", "work").in_scope(|| tracing::info!("worked"));
    if settings.hang {
        std::future::pending::<()>().await;
    }
    host.shutdown().cancelled().await;
    Ok(())
}
