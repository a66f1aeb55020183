//! What tracing costs: the same work on two clusters in turn, one of which exports every span.

use std::net::SocketAddr;

use otlp_embedded::proto::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use otlp_embedded::{TraceService, TraceServiceServer};
use setpoint_machinery::gateway::{Gateway, Settings};
use setpoint_tests::{Cluster, Size};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::report::Report;
use crate::{cascade, writes};

/// Odd, so that there is a median; many, since the two rates differ by less than two runs of the same do.
const TURNS: usize = 7;
const PODS: i32 = 300;

/// The rate of each cluster in turn, and the ratio of their medians.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 10,
        ..Size::default()
    };
    let collector = format!("http://{}", sink().await?);
    let clusters = [Cluster::start(size), Cluster::traced(size, &collector)];
    let mut creates = [Vec::new(), Vec::new()];
    let mut pods = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        // Who begins would else be the one with the quieter machine.
        let order = if turn % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let url = clusters[side].gateway_url();
            creates[side].push(writes::creates(&url, turn, seconds / 2.0).await?.rate);
        }
        for side in order {
            let settings = Settings {
                address: clusters[side].gateway_url(),
                ..Default::default()
            };
            let gateway = Gateway::connect(&settings, "bench")?;
            let took = cascade::one(&gateway, &format!("traced-{turn}"), PODS).await?;
            pods[side].push(f64::from(PODS) / took.as_secs_f64());
        }
    }
    for (what, [off, on]) in [("gateway creates", creates), ("Pods of a cascade", pods)] {
        let (off, on) = (median(off), median(on));
        report.add(format!("{what}, tracing off"), off, "/s");
        report.add(format!("{what}, every span exported"), on, "/s");
        report.add(format!("{what}, traced ÷ untraced"), on / off, "");
    }
    Ok(())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// A collector that reads spans and forgets them: what is kept elsewhere is not ours to measure.
async fn sink() -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let spans = TraceServiceServer::new(Sink).max_decoding_message_size(64 << 20);
    let server = Server::builder().add_service(spans);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Ok(address)
}

struct Sink;

#[tonic::async_trait]
impl TraceService for Sink {
    async fn export(
        &self,
        _: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}
