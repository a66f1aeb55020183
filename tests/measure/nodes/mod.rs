//! Measures an agent on containerd: the time until Pods are available beside that of the same calls without an agent,
//! and what the agent takes of the machine for that and while its Pods run.

mod calls;
mod load;
mod plane;

use std::time::Duration;

use setpoint_tests::cri_node::CriNode;

use calls::Calls;
use plane::Plane;

use crate::pairs::median;
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
    /// CPU time of the agent.
    agent: Duration,
    /// CPU time of containerd.
    containerd: Duration,
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
    let agent = per_pod(|one| one.agent);
    report.add(format!("{what}: CPU of the agent for a start"), agent, "ms");
    let containerd = per_pod(|one| one.containerd);
    report.add(
        format!("{what}: CPU of containerd for a start"),
        containerd,
        "ms",
    );
    Ok(())
}

/// Starts Pods by calls and by the agent, one after the other, and removes them.
async fn one(plane: &mut Plane, calls: &Calls, count: usize) -> anyhow::Result<Start> {
    let (floor, sandboxes) = calls.start(count).await?;
    calls.remove(sandboxes).await?;
    plane.rest().await;
    let before = plane.spent();
    let took = plane.create(count, None).await?;
    let after = plane.spent();
    plane.delete().await?;
    Ok(Start {
        took: took.as_secs_f64(),
        floor: floor.as_secs_f64(),
        agent: after.agent.saturating_sub(before.agent),
        containerd: after.containerd.saturating_sub(before.containerd),
    })
}
