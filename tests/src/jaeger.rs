//! A stand-in for Jaeger: takes spans by OTLP, and serves Jaeger's own UI and query API over them.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use otlp_embedded::{Config, State, TraceServiceImpl, TraceServiceServer, ui_app};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::http;
use crate::trace::Trace;

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

/// One that runs inside a test, until dropped.
pub struct Jaeger {
    otlp: SocketAddr,
    ui: SocketAddr,
    _runtime: Runtime,
}

impl Jaeger {
    /// Starts it on ports that are free.
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts it where somebody already sends spans to; 0 is any port that is free.
    pub fn start_at(port: u16) -> Self {
        let runtime = Runtime::new().expect("threads can be started");
        let bind = |port| runtime.block_on(TcpListener::bind(("127.0.0.1", port)));
        let (otlp, ui) = (
            bind(port).expect("the port is free"),
            bind(0).expect("a free port"),
        );
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let (spans, pages) = (address(&otlp), address(&ui));
        let limits = Limits {
            // Its reckoning overshoots, and what is over the limit is forgotten as a whole.
            memory: 8 << 30,
            ..Limits::default()
        };
        runtime.spawn(serve(otlp, ui, limits, std::future::pending()));
        Self {
            otlp: spans,
            ui: pages,
            _runtime: runtime,
        }
    }

    /// Where spans go.
    pub fn collector(&self) -> String {
        format!("http://{}", self.otlp)
    }

    /// Where its pages are.
    pub fn url(&self) -> String {
        format!("http://{}", self.ui)
    }

    /// One trace, as far as it has arrived; empty if nothing of it has.
    pub fn trace(&self, id: &str) -> Trace {
        let answer = self.get(&format!("/api/traces/{id}"));
        answer
            .and_then(|answer| Trace::read(&answer["data"][0]))
            .unwrap_or_default()
    }

    /// Every trace of which all parents have arrived.
    pub fn traces(&self) -> Vec<Trace> {
        let answer = self.get("/api/traces?limit=1000000");
        let answer = answer.expect("all are asked for, and there are none or some");
        let traces = answer["data"].as_array().cloned().unwrap_or_default();
        traces.iter().filter_map(Trace::read).collect()
    }

    /// What it answers, unless it knows of no such thing.
    fn get(&self, path: &str) -> Option<Value> {
        let reply = http::get(&self.ui.to_string(), path).expect("it answers");
        (reply.status == 200).then(|| serde_json::from_str(&reply.body).expect("it is JSON"))
    }
}
