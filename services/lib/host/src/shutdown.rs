//! Shutdown on SIGTERM and SIGINT.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Listens to SIGTERM and SIGINT from [`Signals::listen`] on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Cancels `stop` at the first signal and ends the process at the second.
    pub async fn cancel_on_signal(mut self, stop: CancellationToken) {
        self.next().await;
        stop.cancel();
        let second = self.next().await;
        warn!("second signal: exiting without waiting");
        // The exit code that a shell reports for a process killed by this signal.
        std::process::exit(128 + second.as_raw_value());
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}
