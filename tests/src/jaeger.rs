//! A stand-in for Jaeger: takes spans by OTLP, and serves Jaeger's own UI and query API over them.

use std::future::Future;
use std::io;

use otlp_embedded::{Config, State, TraceServiceImpl, TraceServiceServer, ui_app};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// One export may hold thousands of spans.
const MESSAGE_MAX: usize = 64 << 20;

/// How much it keeps; the oldest traces go first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many traces.
    pub traces: u32,
    /// So many bytes, roughly.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            traces: 100_000,
            memory: 256 << 20,
        }
    }
}

/// Serves OTLP over gRPC on one listener, UI and query API on the other, until `stop` resolves.
///
/// # Errors
/// When a listener fails.
pub async fn serve(
    otlp: TcpListener,
    ui: TcpListener,
    limits: Limits,
    stop: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let state = State::new(Config {
        max_length: limits.traces,
        max_memory_usage: limits.memory,
    });
    let spans = TraceServiceServer::new(TraceServiceImpl::new(state.clone()));
    let spans = spans.max_decoding_message_size(MESSAGE_MAX);
    let collector = Server::builder()
        .add_service(spans)
        .serve_with_incoming(TcpIncoming::from(otlp));
    let pages = axum::serve(ui, ui_app(state, "/"));
    tokio::select! {
        ended = collector => ended.map_err(io::Error::other),
        ended = pages => ended,
        () = stop => Ok(()),
    }
}
