//! Measures memory and CPU of an idle cluster.

use std::time::Duration;

use setpoint_tests::{Cluster, Size};

use crate::process::{SERVICES, cpu, memory};
use crate::report::Report;

/// Reports the memory of one process of each service, and the CPU of all together over `seconds`.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    };
    let mut cluster = Cluster::start_as_shipped(size);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let pids = SERVICES.map(|name| cluster.process(name).pid());
    let before: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let after: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    for (name, pid) in SERVICES.iter().zip(pids) {
        report.add(
            format!("idle memory of {}", name.trim_end_matches("-0")),
            mib(memory(pid)),
            "MiB",
        );
    }
    let total = pids.iter().map(|&pid| memory(pid)).sum();
    report.add(
        "idle memory of one of each, without etcd",
        mib(total),
        "MiB",
    );
    let share = (after - before).as_secs_f64() / seconds * 100.0;
    report.add(
        "idle CPU of one of each, without etcd",
        share,
        "% of a core",
    );
    Ok(())
}
