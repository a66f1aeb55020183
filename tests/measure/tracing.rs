//! Measures the cost of tracing: the same work on two clusters in turn, one of which exports every span.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use setpoint_tests::{Cluster, Size, client};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::process::{SERVICES, cpu};
use crate::report::Report;
use crate::{cascade, writes};

/// Pairs of clusters: two clusters that do the same differ by a few percent, as often in either direction.
const PAIRS: usize = 4;
/// Turns of each cluster of a pair. Short and alternating, since a machine changes over time.
const TURNS: usize = 6;
/// The Pods of a cascade: enough for spans to be exported while some still start.
const PODS: i32 = 300;
/// The frame size and windows of the collector, in bytes: its own work is not measured.
const WINDOW: u32 = 4 << 20;

const LABELS: [&str; 2] = ["tracing off", "every span exported"];

/// The results without tracing, and with it.
#[derive(Default)]
struct Results {
    creates: [Vec<f64>; 2],
    pods: [Vec<f64>; 2],
    cpu: [Duration; 2],
}

/// Reports both rates of each workload and their ratio.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let taken = Arc::new(AtomicUsize::new(0));
    let collector = format!("http://{}", sink(taken.clone()).await?);
    let mut results = Results::default();
    for _ in 0..PAIRS {
        compare(&collector, seconds / 4.0, &mut results).await?;
    }
    let taken = taken.load(Ordering::Relaxed);
    anyhow::ensure!(taken > 0, "no span was exported");
    report.add("spans that were exported", taken as f64 / 1e6, "MB");
    results.report(report);
    Ok(())
}

/// Measures a pair of clusters in turn.
async fn compare(collector: &str, seconds: f64, results: &mut Results) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 10,
        ..Size::default()
    };
    let mut clusters = [Cluster::start(size), Cluster::traced(size, collector)];
    // Creates before cascades, and each workload once before it is measured.
    for turn in 0..=TURNS {
        for (side, cluster) in clusters.iter().enumerate() {
            let created = writes::creates(&cluster.gateway_url(), turn, seconds).await?;
            if turn > 0 {
                results.creates[side].push(created.rate);
            }
        }
    }
    for turn in 0..=TURNS {
        for (side, cluster) in clusters.iter_mut().enumerate() {
            let gateway = client(&cluster.gateway_url());
            let pids = SERVICES.map(|name| cluster.process(name).pid());
            let spent = || pids.iter().map(|&pid| cpu(pid)).sum::<Duration>();
            tokio::time::sleep(cascade::REST).await;
            let before = spent();
            let took = cascade::one(&gateway, &format!("traced-{turn}"), PODS).await?;
            tokio::time::sleep(cascade::REST).await;
            if turn > 0 {
                results.pods[side].push(f64::from(PODS) / took.as_secs_f64());
                results.cpu[side] += spent() - before;
            }
        }
    }
    Ok(())
}

impl Results {
    fn report(self, report: &mut Report) {
        let pods = (PAIRS * TURNS) as f64 * f64::from(PODS);
        for (label, spent) in LABELS.iter().zip(self.cpu) {
            let per_pod = spent.as_secs_f64() * 1e6 / pods;
            report.add(
                format!("CPU of all services for a Pod, {label}"),
                per_pod,
                "µs",
            );
        }
        let rates = [
            ("gateway creates", self.creates),
            ("Pods of a cascade", self.pods),
        ];
        for (what, [off, on]) in rates {
            let ratios = on.iter().zip(&off).map(|(on, off)| on / off).collect();
            report.add(format!("{what}, {}", LABELS[0]), median(off), "/s");
            report.add(format!("{what}, {}", LABELS[1]), median(on), "/s");
            report.add(format!("{what}, traced ÷ untraced"), median(ratios), "");
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
