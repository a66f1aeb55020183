//! How long the gateway takes until it is ready, with etcd up.

use std::time::{Duration, Instant};

use setpoint_tests::Cluster;

use crate::report::Report;

/// From the process's start to the first 200 of /readyz.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    cluster.process("gateway-0").kill();
    let address = cluster.gateway_url().replace("http://", "");
    let start = Instant::now();
    cluster.start_gateway();
    while !ready(&address).await {
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

async fn ready(address: &str) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let ask = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream
            .write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer.starts_with("HTTP/1.1 200"))
    };
    ask.await.unwrap_or(false)
}
