//! The same work on two clusters in turn, which differ in one thing: what that costs.

use std::time::Duration;

use setpoint_tests::{Cluster, Size, client};

use crate::deployments::Deployments;
use crate::process::{SERVICES, cpu};
use crate::report::Report;
use crate::{cascade, http, writes};

/// The size of each cluster.
pub const SIZE: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 0,
    simulated_nodes: 10,
};
/// Pairs of clusters: two clusters that do the same differ by a few percent, as often in either direction.
const PAIRS: usize = 4;
/// Turns of each cluster of a pair. Short and alternating, since a machine changes over time.
const TURNS: usize = 6;
/// The Pods of a cascade: enough for spans to be exported while some still start.
const PODS: i32 = 300;

/// The results of the first cluster of each pair, and of the second.
#[derive(Default)]
pub struct Results {
    creates: [Vec<f64>; 2],
    http: [Vec<f64>; 2],
    pods: [Vec<f64>; 2],
    cpu: [Duration; 2],
}

impl Results {
    /// Measures pairs of clusters, with so many seconds for each rate in a turn.
    pub async fn measure(start: impl Fn() -> [Cluster; 2], seconds: f64) -> anyhow::Result<Self> {
        let mut results = Self::default();
        for _ in 0..PAIRS {
            results.add(start(), seconds).await?;
        }
        Ok(results)
    }

    /// Adds the results of a pair: creates before cascades, and each workload once before it is measured.
    async fn add(&mut self, mut clusters: [Cluster; 2], seconds: f64) -> anyhow::Result<()> {
        for turn in 0..=TURNS {
            for (side, cluster) in clusters.iter().enumerate() {
                let url = cluster.gateway_url();
                let grpc = writes::creates(&url, turn, seconds).await?;
                let http = http::creates(&url, seconds).await?;
                if turn > 0 {
                    self.creates[side].push(grpc.rate);
                    self.http[side].push(http.rate);
                }
            }
        }
        for turn in 0..=TURNS {
            for (side, cluster) in clusters.iter_mut().enumerate() {
                let (rate, spent) = cascade(cluster, turn).await?;
                if turn > 0 {
                    self.pods[side].push(rate);
                    self.cpu[side] += spent;
                }
            }
        }
        Ok(())
    }

    /// Reports each rate of both, with these labels, and the ratio of the second to the first.
    pub fn report(self, labels: [&str; 2], ratio: &str, report: &mut Report) {
        let pods = (PAIRS * TURNS) as f64 * f64::from(PODS);
        for (label, spent) in labels.iter().zip(self.cpu) {
            let per_pod = spent.as_secs_f64() * 1e6 / pods;
            report.add(
                format!("CPU of all services for a Pod, {label}"),
                per_pod,
                "µs",
            );
        }
        let rates = [
            ("gateway creates", self.creates),
            ("HTTP creates", self.http),
            ("Pods of a cascade", self.pods),
        ];
        for (what, [first, second]) in rates {
            let ratios = second
                .iter()
                .zip(&first)
                .map(|(second, first)| second / first);
            let ratios = ratios.collect();
            report.add(format!("{what}, {}", labels[0]), median(first), "/s");
            report.add(format!("{what}, {}", labels[1]), median(second), "/s");
            report.add(format!("{what}, {ratio}"), median(ratios), "");
        }
    }
}

/// Returns the Pods per second of a cascade, and the CPU time of all services for it.
async fn cascade(cluster: &mut Cluster, turn: usize) -> anyhow::Result<(f64, Duration)> {
    let gateway = client(&cluster.gateway_url());
    let pids = SERVICES.map(|name| cluster.process(name).pid());
    let spent = || pids.iter().map(|&pid| cpu(pid)).sum::<Duration>();
    let deployments = Deployments::watch(&gateway);
    tokio::time::sleep(cascade::REST).await;
    let before = spent();
    let name = format!("turn-{turn}");
    let took = cascade::one(&gateway, &deployments, &name, PODS).await?;
    tokio::time::sleep(cascade::REST).await;
    Ok((f64::from(PODS) / took.as_secs_f64(), spent() - before))
}

/// Returns the median of at least one value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
