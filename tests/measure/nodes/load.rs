//! CPU and memory of the agent while Pods run.

use std::time::Duration;

use serde_json::{Value, json};

use super::plane::Plane;
use crate::process::{anonymous_memory, memory};
use crate::report::Report;

/// The time between the start of the Pods and the measurement.
const SETTLING: Duration = Duration::from_secs(15);
/// The port of the server in each Pod that has a probe.
const PORT: u16 = 8080;

/// Reports the CPU over this time and the memory of the agent with so many Pods, without probes and with one each.
pub async fn measure(
    report: &mut Report,
    plane: &mut Plane,
    count: usize,
    time: Duration,
) -> anyhow::Result<()> {
    for (what, served) in [
        ("idle", None),
        ("with a probe each, every ten seconds", Some(served())),
    ] {
        plane.create(count, served).await?;
        tokio::time::sleep(SETTLING).await;
        let before = plane.spent();
        tokio::time::sleep(time).await;
        let spent = plane.spent().since(before);
        let share = |spent: Duration| spent.as_secs_f64() / time.as_secs_f64() * 100.0;
        let name = |who| format!("{count} Pods on containerd, {what}: {who}");
        let agent = share(spent.agent);
        report.add(name("CPU of the agent"), agent, "% of a core");
        let containerd = share(spent.containerd);
        report.add(name("CPU of containerd"), containerd, "% of a core");
        let (agent, containerd) = plane.processes();
        for (who, bytes) in [
            ("memory of the agent", memory(agent)),
            ("heap and stacks of the agent", anonymous_memory(agent)),
            ("memory of containerd", memory(containerd)),
        ] {
            report.add(name(who), bytes as f64 / 1e6, "MB");
        }
        plane.delete().await?;
    }
    Ok(())
}

/// Returns the fields of a container that serves HTTP and is probed.
fn served() -> Value {
    json!({
        "command": ["busybox", "httpd", "-f", "-p", PORT.to_string(), "-h", "/srv"],
        "livenessProbe": {"httpGet": {"path": "/mark", "port": PORT}, "periodSeconds": 10},
    })
}
