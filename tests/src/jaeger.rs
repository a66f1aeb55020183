//! A stand-in for Jaeger: receives spans over OTLP, keeps them in memory, and serves Jaeger's UI and query API.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use otlp_embedded::{Config, State, TraceServiceImpl, TraceServiceServer, ui_app};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::trace::Trace;
use crate::{Address, http};

/// Size limit of an export, which may hold thousands of spans.
const MESSAGE_MAX: usize = 64 << 20;

/// Limits of the memory; the oldest traces are dropped first.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of traces.
    pub traces: u32,
    /// Approximate maximum size in bytes.
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
/// A listener failed.
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

/// A stand-in inside a test, stopped when dropped.
pub struct Jaeger {
    otlp: SocketAddr,
    ui: SocketAddr,
    _runtime: Runtime,
}

impl Jaeger {
    /// Starts it on free ports.
    pub fn start() -> Self {
        Self::start_at(0)
    }

    /// Starts it with a given OTLP port, to which processes may already send spans; 0 is any free port.
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
            // The store overestimates its size, and drops whole traces above the limit.
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

    /// Returns the URL of the OTLP receiver.
    pub fn collector(&self) -> String {
        format!("http://{}", self.otlp)
    }

    /// Returns the URL of the UI and the query API.
    pub fn url(&self) -> String {
        format!("http://{}", self.ui)
    }

    /// Returns the spans of a trace that have arrived.
    pub fn trace(&self, id: &str) -> Trace {
        let answer = self.get(&format!("/api/traces/{id}"));
        answer
            .and_then(|answer| Trace::read(&answer["data"][0]))
            .unwrap_or_default()
    }

    /// Returns all traces without missing parents.
    pub fn traces(&self) -> Vec<Trace> {
        let answer = self.get("/api/traces?limit=1000000");
        let answer = answer.expect("all are asked for, and there are none or some");
        let traces = answer["data"].as_array().cloned().unwrap_or_default();
        traces.iter().filter_map(Trace::read).collect()
    }

    /// Sends a query; `None` unless the status is 200.
    fn get(&self, path: &str) -> Option<Value> {
        let reply = http::get(&Address::plain(&self.ui.to_string()), path).expect("it answers");
        (reply.status == 200).then(|| serde_json::from_str(&reply.body).expect("it is JSON"))
    }
}
