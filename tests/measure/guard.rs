//! Measures the cost of TLS and RBAC: the same work on two clusters in turn, one of which has neither; and on two of
//! which one has TLS alone, which shows how much of that is authorization.

use setpoint_tests::Cluster;

use crate::pairs::{Results, SIZE};
use crate::report::Report;

/// Reports both rates of each workload and their ratio, for each of the two comparisons.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
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
