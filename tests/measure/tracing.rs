//! What tracing costs: the same work on two clusters in turn, one of which exports every span.

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
use setpoint_machinery::gateway::{Gateway, Settings};
use setpoint_tests::{Cluster, Size};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::process::{SERVICES, cpu};
use crate::report::Report;
use crate::{cascade, writes};

/// Odd, so that there is a median; many and short, since the two rates differ by less than two runs of the same do, and
/// a machine is more like itself a moment ago than a while ago.
const TURNS: usize = 41;
const PODS: i32 = 150;

/// The rate of each cluster in turn, and the median of the turns' ratios.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 10,
        ..Size::default()
    };
    let taken = Arc::new(AtomicUsize::new(0));
    let collector = format!("http://{}", sink(taken.clone()).await?);
    let mut clusters = [Cluster::start(size), Cluster::traced(size, &collector)];
    let mut creates = [Vec::new(), Vec::new()];
    let mut pods = [Vec::new(), Vec::new()];
    let mut spent = [Duration::ZERO; 2];
    for turn in 0..TURNS {
        // Who begins would else be the one with the quieter machine.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let url = clusters[side].gateway_url();
            creates[side].push(writes::creates(&url, turn, seconds / 10.0).await?.rate);
        }
        for side in order {
            let settings = Settings {
                address: clusters[side].gateway_url(),
                ..Default::default()
            };
            let gateway = Gateway::connect(&settings, "bench")?;
            let pids = SERVICES.map(|name| clusters[side].process(name).pid());
            tokio::time::sleep(cascade::REST).await;
            let before: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
            let took = cascade::one(&gateway, &format!("traced-{turn}"), PODS).await?;
            pods[side].push(f64::from(PODS) / took.as_secs_f64());
            tokio::time::sleep(cascade::REST).await;
            spent[side] += pids.iter().map(|&pid| cpu(pid)).sum::<Duration>() - before;
        }
    }
    let taken = taken.load(Ordering::Relaxed);
    anyhow::ensure!(taken > 0, "no span was exported");
    report.add("spans that were exported", taken as f64 / 1e6, "MB");
    let per_pod = spent.map(|spent| spent.as_secs_f64() * 1e6 / (TURNS as f64 * f64::from(PODS)));
    report.add(
        "CPU of all services for a Pod, tracing off",
        per_pod[0],
        "µs",
    );
    report.add(
        "CPU of all services for a Pod, every span exported",
        per_pod[1],
        "µs",
    );
    for (what, [off, on]) in [("gateway creates", creates), ("Pods of a cascade", pods)] {
        let ratios = on.iter().zip(&off).map(|(on, off)| on / off).collect();
        report.add(format!("{what}, tracing off"), median(off), "/s");
        report.add(format!("{what}, every span exported"), median(on), "/s");
        report.add(format!("{what}, traced ÷ untraced"), median(ratios), "");
    }
    Ok(())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A collector that takes spans without reading them: what becomes of them elsewhere is not ours to measure.
async fn sink(taken: Arc<AtomicUsize>) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let spans = Router::new().fallback(take).with_state(taken);
    let server = Server::builder().add_routes(spans.into());
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Ok(address)
}

/// Answers any export as gRPC does: with an empty message, and that all is well.
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
