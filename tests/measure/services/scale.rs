//! Ten thousand Services of ten endpoints: one more, a restart, and memory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use tokio::task::{JoinSet, spawn_blocking};

use super::endpoints::{self, until_answered};
use super::plane::{Backend, Plane};
use super::server::Server;
use crate::pairs::median;
use crate::process::memory;
use crate::report::Report;

const SERVICES: u32 = 10_000;
const ENDPOINTS: u32 = 10;
const CALLERS: usize = 8;
/// The Services that are added, and the restarts.
const ADDED: usize = 20;
const RESTARTS: usize = 3;
const PORT: [(&str, u16); 1] = [("echo", 80)];
const PARTIAL: &str = "kubeproxy_sync_partial_proxy_rules_duration_seconds";
const FULL: &str = "kubeproxy_sync_full_proxy_rules_duration_seconds";

/// Reports what the proxy needs. One listening socket for each Service is beyond what most machines allow a process, so
/// that this is of nftables alone.
pub async fn measure(
    report: &mut Report,
    plane: &mut Plane,
    server: &Server,
) -> anyhow::Result<()> {
    if plane.backend == Backend::Userspace {
        return Ok(());
    }
    let before = memory(plane.proxy());
    let begun = Instant::now();
    let last = fill(plane, server).await?;
    spawn_blocking(move || until_answered(last)).await??;
    report.add(
        "nftables: creating 10 000 Services until all are programmed",
        begun.elapsed().as_secs_f64(),
        "s",
    );
    let each = memory(plane.proxy()).saturating_sub(before) as f64 / f64::from(SERVICES) / 1024.0;
    report.add(
        "nftables: memory of the proxy for a Service of ten endpoints",
        each,
        "KiB",
    );
    one_more(report, plane, server).await?;
    endpoints::measure(report, plane, server, "10 000 others").await?;
    restarts(report, plane, last).await
}

/// Creates all Services, and then one of the server, and returns where that is.
async fn fill(plane: &Plane, server: &Server) -> anyhow::Result<SocketAddr> {
    let (plane, next) = (Arc::new(plane.writer()), Arc::new(AtomicU32::new(0)));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (plane, next) = (Arc::clone(&plane), Arc::clone(&next));
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= SERVICES {
                    return anyhow::Ok(());
                }
                let name = format!("service-{number}");
                plane.service(&name, &PORT).await?;
                plane
                    .endpoints(&name, &[("echo", 8080)], &pods(number))
                    .await?;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    let ip = plane.service("last", &PORT).await?;
    plane
        .endpoints("last", &[("echo", server.echo.port())], &[server.echo.ip()])
        .await?;
    Ok(SocketAddr::new(ip.into(), PORT[0].1))
}

/// Returns the addresses of the Pods of a Service, which no other one has.
fn pods(service: u32) -> Vec<IpAddr> {
    let first = Ipv4Addr::new(10, 128, 0, 0).to_bits() + service * ENDPOINTS;
    (first..first + ENDPOINTS)
        .map(|ip| Ipv4Addr::from_bits(ip).into())
        .collect()
}

/// Reports the time of the transaction for one more Service, and that until it answers.
async fn one_more(report: &mut Report, plane: &Plane, server: &Server) -> anyhow::Result<()> {
    let writer = plane.writer();
    let (mut times, before) = (Vec::new(), plane.histogram(PARTIAL)?);
    for number in 0..ADDED {
        let (name, begun) = (format!("one-more-{number}"), Instant::now());
        let ip = writer.service(&name, &PORT).await?;
        writer
            .endpoints(&name, &[("echo", server.echo.port())], &[server.echo.ip()])
            .await?;
        let at = SocketAddr::new(ip.into(), PORT[0].1);
        spawn_blocking(move || until_answered(at)).await??;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        plane.rest().await;
    }
    let after = plane.histogram(PARTIAL)?;
    let each = (after.0 - before.0) / (after.1 - before.1) * 1e3;
    report.add(
        "nftables: a transaction for a Service among 10 000, mean",
        each,
        "ms",
    );
    let what = "nftables: a Service among 10 000, from its creation to the first answer, median";
    report.add(what, median(times), "ms");
    Ok(())
}

/// Reports the time from the start of a proxy without a table until a Service answers, and that of the transaction.
async fn restarts(report: &mut Report, plane: &mut Plane, last: SocketAddr) -> anyhow::Result<()> {
    let (mut times, mut transactions) = (Vec::new(), Vec::new());
    for _ in 0..RESTARTS {
        let begun = Instant::now();
        plane.restart_from_nothing();
        let answered = spawn_blocking(move || until_answered(last)).await??;
        times.push((answered - begun).as_secs_f64());
        plane.rest().await;
        let (sum, count) = plane.histogram(FULL)?;
        anyhow::ensure!(count > 0.0, "everything was programmed");
        transactions.push(sum / count);
    }
    report.add(
        "nftables: restart with 10 000 Services of ten endpoints",
        median(times),
        "s",
    );
    report.add(
        "nftables: its transaction of everything",
        median(transactions),
        "s",
    );
    Ok(())
}
