//! Measures an agent on containerd: the time until Pods are available beside that of the same calls without an agent,
//! and what the agent takes of the machine for that and while its Pods run.

mod calls;
mod load;
mod plane;

use std::time::Duration;

use setpoint_tests::cri_node::CriNode;

use calls::Calls;
use plane::{Plane, Spent};

use crate::pairs::median;
use crate::process::machine_cpu;
use crate::report::Report;

/// The command of each container.
const COMMAND: [&str; 2] = ["sleep", "1000000"];

/// Reports the starts of each of these numbers of Pods, and over `seconds` each what the agent takes with the last of
/// them, first without probes.
pub async fn measure(report: &mut Report, counts: &[u16], seconds: f64) -> anyhow::Result<()> {
    let Some(node) = CriNode::start() else {
        eprintln!(
            "SKIPPED: nodes on containerd were NOT measured: that takes root, containerd and runc"
        );
        return Ok(());
    };
    let calls = Calls::of(&node.containerd)?;
    let mut plane = Plane::start(node);
    // The first Pod makes the bridge of the network.
    one(&mut plane, &calls, 1).await?;
    for &count in counts {
        starts(report, &mut plane, &calls, count.into()).await?;
    }
    if let Some(&count) = counts.last() {
        let count = count.into();
        load::measure(report, &mut plane, count, Duration::from_secs_f64(seconds)).await?;
    }
    Ok(())
}

/// The cost of a start of Pods.
struct Start {
    /// Seconds until all were available.
    took: f64,
    /// Seconds until the same calls had been answered, without an agent.
    floor: f64,
    /// CPU times until all were available.
    spent: Spent,
    /// CPU time of the machine until the same calls had been answered.
    alone: Duration,
}

/// Reports the medians of starts of so many Pods.
async fn starts(
    report: &mut Report,
    plane: &mut Plane,
    calls: &Calls,
    count: usize,
) -> anyhow::Result<()> {
    let rounds = match count {
        0..=1 => 9,
        2..=10 => 5,
        _ => 3,
    };
    let mut starts = Vec::new();
    for _ in 0..rounds {
        starts.push(one(plane, calls, count).await?);
    }
    let what = format!("{count} Pods on containerd");
    let each = |value: fn(&Start) -> f64| median(starts.iter().map(value).collect());
    report.add(
        format!("{what}: create to available"),
        each(|one| one.took),
        "s",
    );
    report.add(
        format!("{what}: the same calls alone"),
        each(|one| one.floor),
        "s",
    );
    report.add(
        format!("{what}: available ÷ calls alone"),
        each(|one| one.took / one.floor),
        "",
    );
    let per_pod = |spent: fn(&Start) -> Duration| {
        let all: Duration = starts.iter().map(spent).sum();
        all.as_secs_f64() * 1000.0 / (rounds * count) as f64
    };
    for (whose, spent) in [
        ("the agent", per_pod(|one| one.spent.agent)),
        ("the control plane", per_pod(|one| one.spent.control_plane)),
        ("containerd", per_pod(|one| one.spent.containerd)),
        ("the machine", per_pod(|one| one.spent.machine)),
        ("the machine for the calls alone", per_pod(|one| one.alone)),
    ] {
        report.add(format!("{what}: CPU of {whose}, each"), spent, "ms");
    }
    Ok(())
}

/// Starts Pods by calls and by the agent, one after the other, and removes them.
async fn one(plane: &mut Plane, calls: &Calls, count: usize) -> anyhow::Result<Start> {
    let idle = machine_cpu();
    let (floor, sandboxes) = calls.start(count).await?;
    let alone = machine_cpu().saturating_sub(idle);
    calls.remove(sandboxes).await?;
    plane.rest().await;
    let before = plane.spent();
    let took = plane.create(count, None).await?;
    let spent = plane.spent().since(before);
    plane.delete().await?;
    Ok(Start {
        took: took.as_secs_f64(),
        floor: floor.as_secs_f64(),
        spent,
        alone,
    })
}
