//! SIGTERM and SIGINT, and what they mean the first and the second time.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

/// Cancels `stop` at the first signal and ends the process at the second.
pub async fn on_signals(stop: CancellationToken) {
    let (mut terminate, mut interrupt) = match (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    ) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        (Err(error), _) | (_, Err(error)) => {
            error!(%error, "signals cannot be heard; only SIGKILL will stop this process");
            return;
        }
    };
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => SignalKind::terminate(),
            _ = interrupt.recv() => SignalKind::interrupt(),
        }
    };
    next().await;
    stop.cancel();
    let second = next().await;
    warn!("asked twice to stop: not waiting any longer");
    // What a shell reports for a process that died of this signal.
    std::process::exit(128 + second.as_raw_value());
}
