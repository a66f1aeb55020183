//! Measures the cost of TLS and RBAC: the same work on two clusters in turn, one of which has neither; and on two of
//! which one has TLS alone, which shows how much of that is authorization. And the start of a cluster with both and
//! without, certificates included.

use std::time::Instant;

use setpoint_tests::Cluster;

use crate::pairs::{Results, SIZE, median};
use crate::report::Report;

/// The starts of each kind of cluster.
const STARTS: usize = 11;

/// Reports both rates of each workload and their ratio, for each of the two comparisons; and the times of starts.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    start(report);
    let pair = || [Cluster::without_guard(SIZE), Cluster::start(SIZE)];
    let results = Results::measure(pair, seconds / 4.0).await?;
    let labels = ["plaintext and AlwaysAllow", "TLS and Node,RBAC"];
    results.report(labels, "with ÷ without", report);
    let all = ["--authorization-modes", "AlwaysAllow"];
    let pair = || {
        [
            Cluster::with_gateway_flags(SIZE, &all),
            Cluster::start(SIZE),
        ]
    };
    let results = Results::measure(pair, seconds / 4.0).await?;
    let labels = ["TLS and AlwaysAllow", "TLS and Node,RBAC, again"];
    results.report(labels, "Node,RBAC ÷ AlwaysAllow", report);
    Ok(())
}

/// Reports the time from the first process of a new cluster until all are ready, in turn with and without.
fn start(report: &mut Report) {
    let kinds = [Cluster::without_guard, Cluster::start];
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..STARTS {
        for (start, times) in kinds.iter().zip(&mut times) {
            let begun = Instant::now();
            drop(start(SIZE));
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
    }
    let [without, with] = times.map(median);
    report.add(
        "start of a cluster, plaintext and AlwaysAllow",
        without,
        "ms",
    );
    report.add("start of a cluster, TLS and Node,RBAC", with, "ms");
    report.add("start of a cluster, with − without", with - without, "ms");
}
