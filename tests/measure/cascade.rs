//! Measures the time from the creation of a Deployment until N Pods run, on ten simulated nodes.

use std::time::{Duration, Instant};

use serde_json::json;
use setpoint_controller::client::Client;
use setpoint_model::Key;
use setpoint_proto::apps::{Deployment, DeploymentSpec};
use setpoint_tests::{Cluster, Size, client};

use crate::app;
use crate::deployments::Deployments;
use crate::process::{SERVICES, cpu};
use crate::report::Report;

/// Number of Pods and of runs. A single Pod takes a few milliseconds, so that one late timer matters; it has more runs.
const RUNS: [(i32, usize); 3] = [(1, 31), (100, 3), (1000, 3)];
/// The time within which all Pods must be ready or gone.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between two runs, for work that a run leaves behind, such as Events.
pub const REST: Duration = Duration::from_millis(300);

/// Reports the median of the runs for 1, 100 and 1 000 Pods.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let size = Size {
        replicas: 1,
        process_nodes: 0,
        simulated_nodes: 10,
        ..Size::default()
    };
    let mut cluster = Cluster::start(size);
    let gateway = client(&cluster.gateway_url());
    let deployments = Deployments::watch(&gateway);
    for (replicas, runs) in RUNS {
        let mut times = Vec::new();
        let pids = SERVICES.map(|name| cluster.process(name).pid());
        let before: Duration = pids.iter().map(|&pid| cpu(pid)).sum();
        for run in 0..runs {
            tokio::time::sleep(REST).await;
            let name = format!("bench-{replicas}-{run}");
            times.push(one(&gateway, &deployments, &name, replicas).await?);
        }
        let spent = pids.iter().map(|&pid| cpu(pid)).sum::<Duration>() - before;
        times.sort();
        let name = format!("one Deployment to {replicas} Pods Running");
        report.add(name, times[runs / 2].as_secs_f64() * 1000.0, "ms");
        let per_pod = spent.as_secs_f64() * 1000.0 / (runs as f64 * f64::from(replicas));
        report.add(
            format!("CPU of all services per Pod, {replicas} Pods, deletion included"),
            per_pod,
            "ms",
        );
    }
    Ok(())
}

/// Creates the Deployment, waits until all its Pods are ready, and deletes it again.
pub async fn one(
    gateway: &Client,
    deployments: &Deployments,
    name: &str,
    replicas: i32,
) -> anyhow::Result<Duration> {
    let key = Key::new("default", name);
    let until = |since, replicas| {
        deployments.until(&key, since, PATIENCE, move |now| is_ready(now, replicas))
    };
    let start = Instant::now();
    let created = gateway.create(&deployment(name, replicas)).await?;
    until(created.revision, replicas).await?;
    let took = start.elapsed();
    let scaled = gateway
        .patch::<Deployment>(&key, "", json!({"spec": {"replicas": 0}}))
        .await?;
    until(scaled.revision, 0).await?;
    gateway
        .delete::<Deployment>(&key, Default::default(), None)
        .await?;
    Ok(took)
}

/// Returns whether a Deployment has so many Pods, and all of them are ready.
fn is_ready(now: &Deployment, replicas: i32) -> bool {
    let status = &now.status;
    status.observed_generation == now.metadata.generation
        && (status.ready_replicas, status.replicas) == (replicas, replicas)
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    Deployment {
        metadata: app::metadata(name),
        spec: DeploymentSpec {
            replicas: Some(replicas),
            selector: Some(app::selector(name)),
            template: app::template(name),
            ..Default::default()
        },
        ..Default::default()
    }
}
