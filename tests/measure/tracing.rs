//! Measures the cost of tracing: the same work on two clusters in turn, one of which exports every span.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use setpoint_tests::Cluster;
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::pairs::{Results, SIZE};
use crate::report::Report;

/// The frame size and windows of the collector, in bytes: its own work is not measured.
const WINDOW: u32 = 4 << 20;

/// Reports both rates of each workload and their ratio.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let taken = Arc::new(AtomicUsize::new(0));
    let collector = format!("http://{}", sink(taken.clone()).await?);
    let pair = || [Cluster::start(SIZE), Cluster::traced(SIZE, &collector)];
    let results = Results::measure(pair, seconds / 4.0).await?;
    let taken = taken.load(Ordering::Relaxed);
    anyhow::ensure!(taken > 0, "no span was exported");
    report.add("spans that were exported", taken as f64 / 1e6, "MB");
    let labels = ["tracing off", "every span exported"];
    results.report(labels, "traced ÷ untraced", report);
    Ok(())
}

/// Starts a collector that counts bytes and decodes nothing.
async fn sink(taken: Arc<AtomicUsize>) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let spans = Router::new().fallback(take).with_state(taken);
    let server = Server::builder()
        .max_frame_size(WINDOW)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .add_routes(spans.into());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Ok(address)
}

/// Answers any export with an empty message and the status 0.
async fn take(State(taken): State<Arc<AtomicUsize>>, mut spans: Body) -> Response {
    while let Some(Ok(piece)) = spans.frame().await {
        taken.fetch_add(piece.data_ref().map_or(0, Bytes::len), Ordering::Relaxed);
    }
    let mut well = HeaderMap::new();
    well.insert("grpc-status", HeaderValue::from_static("0"));
    let message = Frame::data(Bytes::from_static(&[0; 5]));
    let answer = [message, Frame::trailers(well)].map(Ok::<_, Infallible>);
    let body = Body::new(StreamBody::new(futures::stream::iter(answer)));
    ([(CONTENT_TYPE, "application/grpc")], body).into_response()
}
