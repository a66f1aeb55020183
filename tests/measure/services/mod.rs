//! Measures connections through Services side by side with direct ones, and what the proxy needs for many Services.
//!
//! It runs in a network of its own, in which the Service range is there with nftables, and is of the loopback with user
//! space. Servers are in another network behind a pair of links, as those of Pods are.

mod endpoints;
mod network;
mod plane;
mod requests;
mod scale;
mod server;
mod throughput;

use std::net::SocketAddr;

use plane::{Backend, Plane};

use crate::report::Report;

/// A server, and the same one through a Service.
#[derive(Clone, Copy, Debug)]
struct Ways {
    direct: SocketAddr,
    service: SocketAddr,
}

impl Ways {
    /// Returns both with their names.
    fn named(self) -> [(&'static str, SocketAddr); 2] {
        [("direct", self.direct), ("through a Service", self.service)]
    }
}

/// Reports each measurement for both back ends, with published figures of others.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    if !network::is_inside() {
        return network::run_inside(report, seconds);
    }
    for backend in [Backend::Nftables, Backend::Userspace] {
        let network = network::Network::new(backend)?;
        let mut plane = Plane::start(backend).await?;
        let server = server::Server::start(&network)?;
        let (echo, sink) = plane.web(&server).await?;
        requests::measure(report, &mut plane, echo, seconds)?;
        throughput::measure(report, &mut plane, sink, seconds)?;
        endpoints::measure(report, &plane, &server, "no others").await?;
        scale::measure(report, &mut plane, &server).await?;
        plane.stop();
    }
    published(report);
    Ok(())
}

/// Adds figures that others have published. They are of other machines, and show orders of magnitude.
fn published(report: &mut Report) {
    for (what, value, unit) in [
        (
            "a Service among 10 000, partial sync (kubernetes#126013)",
            141.0,
            "ms",
        ),
        (
            "first sync of 10 000 Services, at least (kubernetes#130119)",
            180.0,
            "s",
        ),
        (
            "programming latency of 100 nodes, p50 (kubernetes#124272)",
            1.5,
            "s",
        ),
        (
            "programming latency of 100 nodes, p99 (kubernetes#124272)",
            6.8,
            "s",
        ),
    ] {
        report.add(
            format!("published of kube-proxy, nftables: {what}"),
            value,
            unit,
        );
    }
}
