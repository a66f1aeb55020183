//! The resource usage of Pods and of the machine: measured at intervals, or simulated.

mod disk;
mod held;
mod machine;
mod report;
mod simulated;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_proto::core::Pod;
use setpoint_proto::setpoint::{ContainerUsage, PodUsage};
use setpoint_runtime::{Container, ContainerId, Reading, Runtime, State};

use crate::node::Pods;
use disk::Disks;
pub use disk::Measured;
pub use held::{Held, by_pod};
pub use machine::boot_time;
#[cfg(test)]
pub use report::MachineCpu;
pub use report::{PodReport, Report};
use simulated::Loads;

/// The interval of readings, which is the window of the usage.
const INTERVAL: Duration = Duration::from_secs(10);

/// Measures the usage of the running containers.
pub struct Meter<R> {
    pods: Arc<Pods<R>>,
    readings: Mutex<Readings>,
    disks: Disks,
    loads: Mutex<Loads>,
}

/// The last two readings of each container.
#[derive(Default)]
struct Readings {
    before: Sample,
    last: Sample,
}

/// The readings of one moment.
#[derive(Clone)]
struct Sample {
    at: Instant,
    time: Timestamp,
    of: HashMap<ContainerId, Reading>,
    /// The CPU time of the machine.
    machine: Option<Duration>,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            at: Instant::now(),
            time: Timestamp::now(),
            of: HashMap::new(),
            machine: None,
        }
    }
}

impl<R: Runtime> Meter<R> {
    /// Returns a meter without readings.
    pub fn new(pods: Arc<Pods<R>>) -> Self {
        Self {
            pods,
            readings: Mutex::default(),
            disks: Disks::default(),
            loads: Mutex::default(),
        }
    }

    /// Reads the runtime at intervals until dropped.
    pub async fn run(&self) {
        if R::SIMULATES_LOAD {
            return std::future::pending().await;
        }
        loop {
            self.read().await;
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Reads the runtime.
    pub async fn read(&self) {
        // Its time is that of the start: a container that starts meanwhile need not be among the readings.
        let start = Sample::default();
        let sample = Sample {
            of: self.pods.runtime.readings().await,
            machine: machine::cpu_time(),
            ..start
        };
        let mut readings = self.readings.lock();
        readings.before = std::mem::replace(&mut readings.last, sample);
    }

    /// Returns the usage of the running Pods of all nodes. A Pod is left out until all of its running containers have
    /// been read.
    pub fn usage(&self) -> Vec<PodUsage> {
        self.usage_of(&self.running_pods())
    }

    fn usage_of(&self, running: &[(Pod, Vec<Container>)]) -> Vec<PodUsage> {
        if R::SIMULATES_LOAD {
            return self.loads.lock().usage(running, Timestamp::now());
        }
        let readings = self.readings.lock();
        let usage = running
            .iter()
            .filter_map(|(pod, containers)| readings.usage(pod, containers));
        usage.collect()
    }

    /// Returns the Pods of all nodes with running containers, and these.
    fn running_pods(&self) -> Vec<(Pod, Vec<Container>)> {
        let running = self.pods.active().filter_map(|view| {
            let pod = view.pod();
            let running = self.running(&pod);
            (!running.is_empty()).then_some((pod, running))
        });
        running.collect()
    }

    /// Returns the running containers of a Pod.
    fn running(&self, pod: &Pod) -> Vec<Container> {
        let meta = &pod.metadata;
        let own = self.pods.sandbox(&Key::of(meta), &meta.uid);
        let containers = own.map(|own| own.containers).unwrap_or_default();
        let is_running = |container: &Container| matches!(container.state, State::Running { .. });
        containers.into_iter().filter(is_running).collect()
    }
}

impl Readings {
    /// Returns the usage of a Pod between the last two readings; `None` if a running container is not in the last one.
    fn usage(&self, pod: &Pod, running: &[Container]) -> Option<PodUsage> {
        let containers = running
            .iter()
            .map(|container| self.container(container))
            .collect::<Option<_>>()?;
        let window = self.last.at.saturating_duration_since(self.before.at);
        Some(pod_usage(pod, containers, self.last.time, window))
    }

    fn container(&self, container: &Container) -> Option<ContainerUsage> {
        let State::Running { since, .. } = container.state else {
            return None;
        };
        let last = self.last.of.get(&container.id)?;
        let before = self.before.of.get(&container.id);
        let (cpu, window) = match before {
            Some(before) => (
                last.cpu.saturating_sub(before.cpu),
                self.last.at.saturating_duration_since(self.before.at),
            ),
            None => (
                last.cpu,
                self.last.time.duration_since(since).unsigned_abs(),
            ),
        };
        Some(ContainerUsage {
            name: container.id.name.clone(),
            cpu_nanocores: nanocores(cpu, window),
            memory_bytes: last.memory,
        })
    }
}

fn pod_usage(
    pod: &Pod,
    containers: Vec<ContainerUsage>,
    time: Timestamp,
    window: Duration,
) -> PodUsage {
    let meta = &pod.metadata;
    PodUsage {
        node: pod.spec.node_name.clone(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        time_ns: i64::try_from(time.as_nanosecond()).unwrap_or_default(),
        window_ns: i64::try_from(window.as_nanos()).unwrap_or(i64::MAX),
        containers,
    }
}

/// Returns CPU time over an interval in billionths of a core.
fn nanocores(cpu: Duration, window: Duration) -> u64 {
    let scaled = cpu.as_nanos().saturating_mul(1_000_000_000);
    let rate = scaled.checked_div(window.as_nanos()).unwrap_or_default();
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(name: &str, since: Timestamp) -> Container {
        Container {
            id: ContainerId {
                name: name.into(),
                ..ContainerId::default()
            },
            sandbox: String::new(),
            image: String::new(),
            image_id: String::new(),
            runtime_id: String::new(),
            backoff: Duration::ZERO,
            round: 0,
            resources: None,
            state: State::Running {
                since,
                stopping: None,
            },
        }
    }

    fn sample(at: Instant, time: Timestamp, cpu: Duration, of: &[&Container]) -> Sample {
        let reading = Reading { cpu, memory: 7 };
        let of = of.iter().map(|one| (one.id.clone(), reading)).collect();
        Sample {
            at,
            time,
            of,
            machine: None,
        }
    }

    #[test]
    fn the_usage_is_the_mean_between_two_readings_or_since_the_start() {
        let (start, began) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let later = Duration::from_secs(10);
        let after = |by: Duration| began.checked_add(by).unwrap();
        let (old, new) = (
            container("old", began),
            container("new", after(later * 3 / 4)),
        );
        let cpu = Duration::from_secs;
        let mut readings = Readings {
            before: sample(start, began, cpu(2), &[&old]),
            last: sample(start + later, after(later), cpu(7), &[&old, &new]),
        };
        let pod = Pod::default();
        let both = [old.clone(), new];
        let usage = readings.usage(&pod, &both).unwrap();
        let cores: Vec<_> = usage
            .containers
            .iter()
            .map(|one| one.cpu_nanocores)
            .collect();
        assert_eq!(cores, [500_000_000, 2_800_000_000]);
        assert_eq!(usage.window_ns, 10_000_000_000);
        readings.last.of.remove(&old.id);
        assert_eq!(readings.usage(&pod, &both), None, "one has not been read");
    }

    #[test]
    fn a_rate_without_an_interval_is_zero() {
        assert_eq!(nanocores(Duration::from_secs(1), Duration::ZERO), 0);
        assert_eq!(nanocores(Duration::MAX, Duration::from_nanos(1)), u64::MAX);
    }
}
