//! Measures the start of the gateway with a running etcd.

use std::time::{Duration, Instant};

use setpoint_tests::{Address, Cluster, http};

use crate::report::Report;

/// Reports the time from the start of the process to the first 200 of /readyz.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    cluster.process("gateway-0").kill();
    let address = cluster.gateway_url();
    let start = Instant::now();
    cluster.start_gateway();
    while !ready(&address) {
        anyhow::ensure!(
            start.elapsed() < Duration::from_secs(10),
            "the gateway is not ready after 10 s"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    report.add(
        "gateway start to ready",
        start.elapsed().as_secs_f64() * 1000.0,
        "ms",
    );
    Ok(())
}

fn ready(address: &Address) -> bool {
    http::get(address, "/readyz").is_ok_and(|reply| reply.status == 200)
}
