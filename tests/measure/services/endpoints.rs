//! The time from the readiness of an endpoint to its first request, and from its end to the last.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio::task::spawn_blocking;

use super::plane::Plane;
use super::requests::{exchange, open};
use super::server::Server;
use crate::report::Report;

const ROUNDS: usize = 100;
/// The time between two requests.
const PAUSE: Duration = Duration::from_micros(200);
const PATIENCE: Duration = Duration::from_secs(300);

/// Reports both times, with these other Services. They begin when the write of the EndpointSlice is sent.
pub async fn measure(
    report: &mut Report,
    plane: &Plane,
    server: &Server,
    others: &str,
) -> anyhow::Result<()> {
    // One of its own for each number of others.
    let name = &format!("with-{}", others.replace(' ', "-"));
    let ip = plane.writer().service(name, &[("echo", 80)]).await?;
    let at = SocketAddr::new(ip.into(), 80);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let answered = spawn_blocking(move || until_answered(at));
        let begun = Instant::now();
        plane
            .writer()
            .endpoints(name, &[("echo", server.echo.port())], &[server.echo.ip()])
            .await?;
        first.push(answered.await?? - begun);
        let refused = spawn_blocking(move || until_refused(at));
        let begun = Instant::now();
        plane.writer().remove_endpoints(name).await?;
        last.push(refused.await??.saturating_duration_since(begun));
        plane.rest().await;
    }
    for (what, mut times) in [
        ("readiness to the first request", first),
        ("end to the last request", last),
    ] {
        times.sort_unstable();
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            let time = times[((ROUNDS - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
            report.add(
                format!("{}: {what}, {others}, {name}", plane.backend),
                time,
                "ms",
            );
        }
    }
    Ok(())
}

/// Sends requests until one is answered, and returns when it was.
pub fn until_answered(at: SocketAddr) -> anyhow::Result<Instant> {
    let end = Instant::now() + PATIENCE;
    while !answers(at) {
        ensure!(Instant::now() < end, "{at} does not answer");
        sleep(PAUSE);
    }
    Ok(Instant::now())
}

/// Sends requests until one is refused, and returns when the last one was answered.
fn until_refused(at: SocketAddr) -> anyhow::Result<Instant> {
    let end = Instant::now() + PATIENCE;
    let mut last = Instant::now();
    while answers(at) {
        last = Instant::now();
        ensure!(last < end, "{at} goes on to answer");
        sleep(PAUSE);
    }
    Ok(last)
}

fn answers(at: SocketAddr) -> bool {
    open(at)
        .and_then(|mut stream| exchange(&mut stream))
        .is_ok()
}
