//! SIGTERM and SIGINT, and what they mean the first and the second time.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// The signals that ask a process to stop, heard from the moment of [`Signals::listen`].
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
    pub async fn obey(mut self, stop: CancellationToken) {
        self.next().await;
        stop.cancel();
        let second = self.next().await;
        warn!("asked twice to stop: not waiting any longer");
        // What a shell reports for a process that died of this signal.
        std::process::exit(128 + second.as_raw_value());
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.interrupt.recv() => SignalKind::interrupt(),
        }
    }
}
