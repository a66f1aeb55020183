//! Measures the delivery of changes to many watchers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::setpoint::WatchRequest;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_tests::{Address, Cluster, client};

use crate::load;
use crate::process::{cpu, memory};
use crate::report::Report;

const WRITERS: usize = 8;
const IDLE: usize = 10_000;

/// Reports deliveries per second and the gateway's CPU time for each, with 1, 16 and 256 watchers.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    for watchers in [1, 16, 256] {
        let mut cluster = Cluster::bare();
        let url = cluster.gateway_url();
        let gateway = cluster.process("gateway-0").pid();
        let alone = without_watchers(&url, gateway, seconds).await?;
        let delivered = watch(&url, watchers).await?;
        let (cpu_before, seen_before) = (cpu(gateway), delivered.load(Ordering::Relaxed));
        let load = writes(&url, &format!("w{watchers}"), seconds).await?;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let deliveries = (delivered.load(Ordering::Relaxed) - seen_before) as f64;
        let spent = (cpu(gateway) - cpu_before).as_secs_f64();
        let writing = alone * load.rate * seconds * 1.1;
        report.add(
            format!("deliveries to {watchers} watchers"),
            deliveries / (seconds * 1.1),
            "/s",
        );
        report.add(
            format!("gateway CPU per delivery at {watchers} watchers, writes included"),
            spent * 1e6 / deliveries,
            "µs",
        );
        report.add(
            format!("gateway CPU per delivery at {watchers} watchers, writes taken off"),
            (spent - writing).max(0.0) * 1e6 / deliveries,
            "µs",
        );
    }
    idle(report).await
}

/// Reports the gateway's memory for watches of which nothing happens.
async fn idle(report: &mut Report) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    let gateway = cluster.process("gateway-0").pid();
    let before = memory(gateway);
    let _watches = watch(&cluster.gateway_url(), IDLE).await?;
    let after = memory(gateway);
    let each = after.saturating_sub(before) as f64 / IDLE as f64 / 1024.0;
    report.add(
        format!("memory of the gateway for a watch of {IDLE} idle ones"),
        each,
        "KiB",
    );
    let all = after as f64 / f64::from(1 << 20);
    report.add(
        format!("memory of the gateway with {IDLE} idle watches"),
        all,
        "MiB",
    );
    Ok(())
}

/// Returns the gateway's CPU time for a write without watchers, in seconds.
async fn without_watchers(url: &Address, gateway: u32, seconds: f64) -> anyhow::Result<f64> {
    let before = cpu(gateway);
    let load = writes(url, "alone", seconds / 2.0).await?;
    Ok((cpu(gateway) - before).as_secs_f64() / (load.rate * seconds / 2.0 * 1.1))
}

async fn writes(url: &Address, prefix: &str, seconds: f64) -> anyhow::Result<load::Load> {
    let gateway = client(url);
    let prefix = prefix.to_owned();
    load::run(WRITERS, seconds, move |caller, n| {
        let gateway = gateway.clone();
        let object = ConfigMap {
            metadata: ObjectMeta {
                namespace: "default".to_owned(),
                name: format!("{prefix}-{caller}-{n}"),
                ..Default::default()
            },
            data: [("data".to_owned(), "x".repeat(1200))].into(),
            ..Default::default()
        };
        Box::pin(async move {
            gateway.create(&object).await?;
            Ok(())
        })
    })
    .await
}

/// Starts the watchers, sixteen per connection, and counts the events that all receive together.
async fn watch(url: &Address, watchers: usize) -> anyhow::Result<Arc<AtomicU64>> {
    let delivered = Arc::new(AtomicU64::new(0));
    let mut channel = None;
    for n in 0..watchers {
        if n % 16 == 0 {
            channel = Some(url.channel(|endpoint| {
                endpoint
                    .initial_stream_window_size(4 << 20)
                    .initial_connection_window_size(16 << 20)
            })?);
        }
        let mut client = ObjectsClient::new(channel.clone().ok_or(anyhow::anyhow!("no channel"))?);
        let request = WatchRequest {
            resource: "configmaps".to_owned(),
            ..Default::default()
        };
        let mut stream = client.watch(request).await?.into_inner();
        let delivered = delivered.clone();
        tokio::spawn(async move {
            while let Ok(Some(_)) = stream.message().await {
                delivered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    Ok(delivered)
}
