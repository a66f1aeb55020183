//! Measures the cost of encryption at rest: creates of Secrets by a gateway with a KMS and by one without, in turn.

use std::fs;

use setpoint_encryption::kms::testing::TestKms;
use setpoint_proto::core::Secret;
use setpoint_tests::{Address, Cluster};
use tempfile::TempDir;

use crate::load::Load;
use crate::pairs::median;
use crate::report::Report;
use crate::writes::{CALLERS, SIZE, creates_of};

/// Turns of each gateway. Short and alternating, since a machine changes over time.
const TURNS: usize = 9;

/// Reports the time of a create and the rate of creates of both, and their ratios.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let directory = TempDir::new()?;
    let socket = directory.path().join("kms");
    let _kms = TestKms::start(&socket);
    let file = directory.path().join("encryption.yaml");
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: [{{resources: [secrets], \
         providers: [{{kms: {{apiVersion: v2, name: bench, endpoint: 'unix://{}'}}}}]}}]}}",
        socket.display()
    );
    fs::write(&file, text)?;
    let clusters = [
        Cluster::bare(),
        with_encryption(&file.display().to_string()),
    ];
    let (mut times, mut rates) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for turn in 0..=TURNS {
        for (side, cluster) in clusters.iter().enumerate() {
            let url = cluster.gateway_url();
            let one = creates(&url, 1, turn, seconds / 4.0).await?;
            let many = creates(&url, CALLERS, turn, seconds / 4.0).await?;
            // The first turn warms both up.
            if turn > 0 {
                times[side].push(one.percentile(0.5));
                rates[side].push(many.rate);
            }
        }
    }
    let ratio = |[plain, encrypted]: &[Vec<f64>; 2]| {
        let pairs = encrypted.iter().zip(plain);
        median(pairs.map(|(encrypted, plain)| encrypted / plain).collect())
    };
    report.add(
        "create of a Secret, KMS v2 ÷ plain text, p50",
        ratio(&times),
        "",
    );
    report.add("creates of Secrets, KMS v2 ÷ plain text", ratio(&rates), "");
    let labels = ["plain text", "KMS v2"];
    for ((label, times), rates) in labels.iter().zip(times).zip(rates) {
        report.add(
            format!("create of a Secret, {label}, p50"),
            median(times),
            "ms",
        );
        report.add(format!("creates of Secrets, {label}"), median(rates), "/s");
    }
    Ok(())
}

fn with_encryption(file: &str) -> Cluster {
    let mut cluster = Cluster::without_etcd();
    cluster.set_gateway_flags(&["--encryption-provider-config", file]);
    cluster.start_etcd();
    cluster.start_gateway();
    cluster.wait_until_ready();
    cluster
}

/// Runs creates of Secrets of [`SIZE`] bytes.
async fn creates(
    gateway: &Address,
    callers: usize,
    turn: usize,
    seconds: f64,
) -> anyhow::Result<Load> {
    let data = bytes::Bytes::from(vec![b'x'; SIZE]);
    creates_of(gateway, callers, turn, seconds, move |metadata| Secret {
        metadata,
        data: [("data".to_owned(), data.clone())].into(),
        ..Default::default()
    })
    .await
}
