//! Measures memory and CPU of an idle cluster.

use std::time::Duration;

use setpoint_tests::{Cluster, Size};

use crate::process::{SERVICES, cpu, proportional_memory};
use crate::report::Report;

/// The process of all controllers that have none of their own, as `setpoint up` starts it.
const MANAGER: &str = "controller-manager-0";
const MANAGED: [&str; 2] = ["--controllers", "*,-deployment,-replicaset"];
/// The manager with which tests start, which runs only some of them.
const HOUSEKEEPER: &str = "controller-manager-9";

/// The time between the start and the measurement.
const SETTLING: Duration = Duration::from_secs(10);

/// Reports the memory of one process of each service, with all controllers, and the CPU of all together over `seconds`.
/// Pages that several of them have, such as the code of one program, are counted once.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    };
    let mut cluster = Cluster::start_as_shipped(size);
    cluster.process(HOUSEKEEPER).stop();
    cluster.service("controller-manager", 0, &MANAGED.map(str::to_owned));
    // All Leases are held, and what is created at the start is there.
    tokio::time::sleep(SETTLING).await;
    let services = SERVICES.into_iter().chain([MANAGER]);
    let services: Vec<_> = services
        .map(|name| (name, cluster.process(name).pid()))
        .collect();
    let pids: Vec<_> = services.iter().map(|(_, pid)| *pid).collect();
    let before: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    let after: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    for (name, pid) in services {
        report.add(
            format!("idle memory of {}", name.trim_end_matches("-0")),
            mib(proportional_memory(pid)),
            "MiB",
        );
    }
    let total = pids.iter().map(|&pid| proportional_memory(pid)).sum();
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
