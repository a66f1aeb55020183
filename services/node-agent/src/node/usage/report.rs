//! The last measurements, for the pages that report them.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::ContainerUsage;
use setpoint_runtime::{Container, ContainerId, Runtime};

use super::{Meter, Readings, nanocores};

/// The last measurements of a node and its Pods.
#[derive(Debug, Default)]
pub struct Report {
    /// The time of the measurement.
    pub time: Timestamp,
    /// The CPU usage of the machine, if it was measured.
    pub cpu: Option<MachineCpu>,
    /// The Pods with running containers.
    pub pods: Vec<PodReport>,
}

/// The CPU usage of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    /// The CPU time since the machine started.
    pub total: Duration,
    /// The mean usage in billionths of a core, if two readings are known.
    pub nanocores: Option<u64>,
}

/// A Pod with running containers.
#[derive(Debug)]
pub struct PodReport {
    /// The Pod.
    pub pod: Pod,
    /// Its running containers.
    pub containers: Vec<Container>,
    /// The usage of those that have been read.
    pub usage: HashMap<ContainerId, ContainerUsage>,
    /// The CPU time of those that have been read since they started; none if it is simulated.
    pub cpu: HashMap<ContainerId, Duration>,
}

impl<R: Runtime> Meter<R> {
    /// Returns what was measured of a node, by its name, and its Pods.
    pub fn report(&self, node: &str) -> Report {
        let mut running = self.running_pods();
        if R::SIMULATES_LOAD {
            // The Pods of a workload share its load across nodes.
            let usage = self.usage_of(&running);
            let mut usage: HashMap<_, _> = usage
                .into_iter()
                .map(|pod| (pod.uid, pod.containers))
                .collect();
            running.retain(|(pod, _)| pod.spec.node_name == node);
            let pods = running.into_iter().map(|(pod, containers)| {
                let simulated = usage.remove(&pod.metadata.uid).unwrap_or_default();
                PodReport::simulated(pod, containers, simulated)
            });
            return Report {
                time: Timestamp::now(),
                cpu: None,
                pods: pods.collect(),
            };
        }
        running.retain(|(pod, _)| pod.spec.node_name == node);
        let readings = self.readings.lock();
        let pods = running.into_iter();
        Report {
            time: readings.last.time,
            cpu: readings.machine(),
            pods: pods
                .map(|(pod, containers)| readings.report(pod, containers))
                .collect(),
        }
    }
}

impl PodReport {
    fn simulated(pod: Pod, containers: Vec<Container>, usage: Vec<ContainerUsage>) -> Self {
        let ids = containers.iter().map(|container| container.id.clone());
        Self {
            pod,
            usage: ids.zip(usage).collect(),
            containers,
            cpu: HashMap::new(),
        }
    }
}

impl Readings {
    fn report(&self, pod: Pod, containers: Vec<Container>) -> PodReport {
        let usage = containers
            .iter()
            .filter_map(|one| Some((one.id.clone(), self.container(one)?)));
        let cpu = containers
            .iter()
            .filter_map(|one| Some((one.id.clone(), self.last.of.get(&one.id)?.cpu)));
        PodReport {
            pod,
            usage: usage.collect(),
            cpu: cpu.collect(),
            containers,
        }
    }

    fn machine(&self) -> Option<MachineCpu> {
        let total = self.last.machine?;
        let window = self.last.at.saturating_duration_since(self.before.at);
        let used = |before: Duration| nanocores(total.saturating_sub(before), window);
        Some(MachineCpu {
            total,
            nanocores: self.before.machine.map(used),
        })
    }
}
