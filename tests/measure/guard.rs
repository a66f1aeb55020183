//! Measures the cost of TLS and RBAC: the same work on two clusters in turn, one of which has neither.

use setpoint_tests::Cluster;

use crate::pairs::{Results, SIZE};
use crate::report::Report;

/// Reports both rates of each workload and their ratio.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let pair = || [Cluster::without_guard(SIZE), Cluster::start(SIZE)];
    let results = Results::measure(pair, seconds / 4.0).await?;
    let labels = ["plaintext and AlwaysAllow", "TLS and Node,RBAC"];
    results.report(labels, "with ÷ without", report);
    Ok(())
}
