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
use setpoint_tests::{Cluster, Size};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::process::{SERVICES, cpu};
use crate::report::Report;
use crate::{cascade, client, writes};

/// Two clusters are never quite alike, whatever they do: that differs more than turns of one pair do.
const PAIRS: usize = 15;
/// Short ones, since a machine is more like itself a moment ago than a while ago; even, so that both begin as often.
const TURNS: usize = 8;
/// A collector takes so many bytes in one piece: what it does with them is not ours to measure.
const LARGE: u32 = 4 << 20;
/// Enough for spans to be exported while Pods still come up.
const PODS: i32 = 300;

/// What the cluster without tracing did, and the one with it.
#[derive(Default)]
struct Done {
    creates: [Vec<f64>; 2],
    pods: [Vec<f64>; 2],
    spent: [Duration; 2],
}

/// The rate of each cluster in turn, and the middle of the turns' ratios.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let taken = Arc::new(AtomicUsize::new(0));
    let collector = format!("http://{}", sink(taken.clone()).await?);
    let mut done = Done::default();
    for pair in 0..PAIRS {
        compare(pair, &collector, seconds / 10.0, &mut done).await?;
    }
    let taken = taken.load(Ordering::Relaxed);
    anyhow::ensure!(taken > 0, "no span was exported");
    report.add("spans that were exported", taken as f64 / 1e6, "MB");
    done.report(report);
    Ok(())
}

/// What a pair of clusters does in turn.
async fn compare(
    pair: usize,
    collector: &str,
    seconds: f64,
    done: &mut Done,
) -> anyhow::Result<()> {
    let mut clusters = start(pair, collector);
    // One after the other: what creates leave behind, in etcd and on its disk, is no cascade's business.
    for (turn, side) in turns(pair) {
        let url = clusters[side].gateway_url();
        let created = writes::creates(&url, turn, seconds).await?;
        done.creates[side].push(created.rate);
    }
    // The first one pays for memory and connections that are there from then on. Who was last here goes on.
    for side in alternate(pair + 1, [0, 1]) {
        cascade::one(
            &client::connect(clusters[side].gateway_url())?,
            "first",
            PODS,
        )
        .await?;
    }
    for (turn, side) in turns(pair) {
        let gateway = client::connect(clusters[side].gateway_url())?;
        let pids = SERVICES.map(|name| clusters[side].process(name).pid());
        tokio::time::sleep(cascade::REST).await;
        let before: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
        let took = cascade::one(&gateway, &format!("traced-{turn}"), PODS).await?;
        done.pods[side].push(f64::from(PODS) / took.as_secs_f64());
        tokio::time::sleep(cascade::REST).await;
        done.spent[side] += pids.iter().map(|&pid| cpu(pid)).sum::<Duration>() - before;
    }
    Ok(())
}

/// Each turn of each side. Either begins as often, and comes after itself as often: what is warm is faster.
fn turns(pair: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..TURNS).flat_map(move |turn| alternate(pair + turn, [0, 1]).map(|side| (turn, side)))
}

/// One cluster without tracing and one with it, begun in either order.
fn start(pair: usize, collector: &str) -> [Cluster; 2] {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 10,
        ..Size::default()
    };
    let begun = alternate(pair, [false, true]).map(|traced| match traced {
        false => Cluster::start(size),
        true => Cluster::traced(size, collector),
    });
    alternate(pair, begun)
}

fn alternate<T>(time: usize, [first, second]: [T; 2]) -> [T; 2] {
    match time % 2 {
        0 => [first, second],
        _ => [second, first],
    }
}

impl Done {
    fn report(self, report: &mut Report) {
        let pods = (PAIRS * TURNS) as f64 * f64::from(PODS);
        let how = ["tracing off", "every span exported"];
        for (how, spent) in how.iter().zip(self.spent) {
            let per_pod = spent.as_secs_f64() * 1e6 / pods;
            report.add(
                format!("CPU of all services for a Pod, {how}"),
                per_pod,
                "µs",
            );
        }
        let rates = [
            ("gateway creates", self.creates),
            ("Pods of a cascade", self.pods),
        ];
        for (what, [off, on]) in rates {
            let ratios: Vec<_> = on.iter().zip(&off).map(|(on, off)| on / off).collect();
            let error = standard_error(&ratios);
            report.add(format!("{what}, {}", how[0]), median(off), "/s");
            report.add(format!("{what}, {}", how[1]), median(on), "/s");
            report.add(format!("{what}, traced ÷ untraced"), middle(ratios), "");
            report.add(format!("{what}, standard error of the mean"), error, "");
        }
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// The standard error of their mean: two clusters that do the same may differ by twice as much.
fn standard_error(ratios: &[f64]) -> f64 {
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2));
    (squares.sum::<f64>() / (count - 1.0) / count).sqrt()
}

/// The mean of the half in the middle: steadier than a median, and as little impressed by a turn that was disturbed.
fn middle(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    let (quarter, all) = (ratios.len() / 4, ratios.len());
    let middle = &ratios[quarter..all - quarter];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// A collector that takes spans without reading them: what becomes of them elsewhere is not ours to measure.
async fn sink(taken: Arc<AtomicUsize>) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let spans = Router::new().fallback(take).with_state(taken);
    let server = Server::builder()
        .max_frame_size(LARGE)
        .initial_stream_window_size(LARGE)
        .initial_connection_window_size(LARGE)
        .add_routes(spans.into());
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
