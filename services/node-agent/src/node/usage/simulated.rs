//! The CPU usage of simulated Pods, which follows a curve that the user sets.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::Pod;
use setpoint_proto::meta::{self, Quantity};
use setpoint_proto::setpoint::{ContainerUsage, PodUsage};
use setpoint_runtime::{Container, State};

use super::pod_usage;

/// The annotation of a Pod with the CPU load of its workload: a quantity such as `500m`, or steps such as
/// `0s=500m 1m=4 5m=500m`, each from a time since the first Pod of the workload started. The Pods of one controller
/// share the load equally, up to their limits.
const LOAD: &str = "setpoint.dev/simulated-load";

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
/// The window of simulated usage, which is that of measured usage.
const WINDOW: Duration = super::INTERVAL;

/// The start of the first Pod of each workload, by the uid of its controller.
#[derive(Default)]
pub struct Loads {
    began: HashMap<String, Timestamp>,
}

impl Loads {
    /// Returns the usage of Pods with their running containers.
    pub fn usage(&mut self, pods: &[(Pod, Vec<Container>)], now: Timestamp) -> Vec<PodUsage> {
        let mut sizes: HashMap<&str, u64> = HashMap::new();
        for (pod, containers) in pods {
            let workload = workload(pod);
            let size = sizes.entry(workload).or_default();
            *size = size.saturating_add(1);
            let started = containers.iter().filter_map(started).min().unwrap_or(now);
            let began = self.began.entry(workload.to_owned()).or_insert(started);
            *began = started.min(*began);
        }
        self.began
            .retain(|workload, _| sizes.contains_key(workload.as_str()));
        let usage = pods.iter().map(|(pod, containers)| {
            let size = sizes.get(workload(pod)).copied().unwrap_or(1);
            let began = self.began.get(workload(pod)).copied().unwrap_or(now);
            let elapsed = now.duration_since(began).unsigned_abs();
            let containers = split(pod, containers, load(pod, elapsed) / size.max(1));
            pod_usage(pod, containers, now, WINDOW)
        });
        usage.collect()
    }
}

/// Returns the uid of a Pod's controller, or that of the Pod.
fn workload(pod: &Pod) -> &str {
    let mut owners = pod.metadata.owner_references.iter();
    let controller = owners.find(|owner| owner.controller == Some(true));
    controller.map_or(&pod.metadata.uid, |owner| &owner.uid)
}

fn started(container: &Container) -> Option<Timestamp> {
    match container.state {
        State::Running { since, .. } => Some(since),
        _ => None,
    }
}

/// Splits a load in nanocores equally among containers. Each uses at most its CPU limit, and the memory that it
/// requests.
fn split(pod: &Pod, running: &[Container], load: u64) -> Vec<ContainerUsage> {
    let share = load / u64::try_from(running.len()).unwrap_or(u64::MAX).max(1);
    let all = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let usage = running.iter().map(|container| {
        let spec = all().find(|spec| spec.name == container.id.name);
        let limit = spec.and_then(|spec| amount(&spec.resources.limits, CPU));
        let memory = spec.and_then(|spec| amount(&spec.resources.requests, MEMORY));
        let memory = memory.map_or(0, Amount::value);
        ContainerUsage {
            name: container.id.name.clone(),
            cpu_nanocores: limit.map_or(share, |limit| share.min(nanocores(limit))),
            memory_bytes: u64::try_from(memory).unwrap_or_default(),
        }
    });
    usage.collect()
}

/// Returns the load that a Pod's annotation sets at a time; zero without one, and for an invalid one.
fn load(pod: &Pod, elapsed: Duration) -> u64 {
    let curve = pod.metadata.annotations.get(LOAD);
    curve
        .and_then(|curve| at(curve, elapsed))
        .unwrap_or_default()
}

/// Returns the value of a curve at a time; `None` if the curve is invalid or has not begun.
fn at(curve: &str, elapsed: Duration) -> Option<u64> {
    let parse = |load: &str| Amount::parse(load).ok().map(nanocores);
    if !curve.contains('=') {
        return parse(curve);
    }
    let mut value = None;
    for step in curve.split_whitespace() {
        let (from, load) = step.split_once('=')?;
        let load = parse(load)?;
        if from.parse::<meta::Duration>().ok()?.length() <= elapsed {
            value = Some(load);
        }
    }
    value
}

fn amount(list: &BTreeMap<String, Quantity>, name: &str) -> Option<Amount> {
    Amount::parse(&list.get(name)?.string).ok()
}

fn nanocores(cpu: Amount) -> u64 {
    let millicores = u64::try_from(cpu.millis()).unwrap_or_default();
    millicores.saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Container as Specified;
    use setpoint_proto::meta::OwnerReference;

    use super::*;
    use setpoint_runtime::ContainerId;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a Pod of the workload `set` with a container that runs since `second`.
    fn pod(name: &str, load: &str, limit: &str, second: i64) -> (Pod, Vec<Container>) {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.annotations = [(LOAD.to_owned(), load.to_owned())].into();
        pod.metadata.owner_references.push(OwnerReference {
            uid: "set".into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        let mut main = Specified {
            name: "main".into(),
            ..Specified::default()
        };
        let list = |name: &str, amount: &str| [(name.to_owned(), Quantity::new(amount))].into();
        main.resources.limits = list(CPU, limit);
        main.resources.requests = list(MEMORY, "1Mi");
        pod.spec.containers.push(main);
        let running = Container {
            id: ContainerId {
                name: "main".into(),
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
                since: Timestamp::from_second(second).unwrap(),
                stopping: None,
            },
        };
        (pod, vec![running])
    }

    fn cores(loads: &mut Loads, pods: &[(Pod, Vec<Container>)], second: i64) -> Vec<u64> {
        let usage = loads.usage(pods, Timestamp::from_second(second).unwrap());
        let used = usage.iter().map(|pod| pod.containers[0].cpu_nanocores);
        used.map(|nanos| nanos / 1_000_000).collect()
    }

    #[test]
    fn pods_of_a_workload_share_its_load_up_to_their_limits() {
        let mut loads = Loads::default();
        let load = "0s=900m 1m=4";
        let pods = [pod("a", load, "1", 100), pod("b", load, "10", 110)];
        assert_eq!(cores(&mut loads, &pods, 120), [450, 450]);
        assert_eq!(cores(&mut loads, &pods, 160), [1000, 2000]);
        let usage = loads.usage(&pods, Timestamp::UNIX_EPOCH);
        assert_eq!(usage[0].containers[0].memory_bytes, 1 << 20);
    }

    #[test]
    fn the_curve_goes_on_when_the_first_pod_is_gone() {
        let mut loads = Loads::default();
        let load = "0s=1 1m=3";
        let pods = [pod("a", load, "9", 100), pod("b", load, "9", 150)];
        assert_eq!(cores(&mut loads, &pods, 150), [500, 500]);
        assert_eq!(cores(&mut loads, &pods[1..], 161), [3000]);
        assert!(cores(&mut loads, &[], 170).is_empty());
        assert_eq!(cores(&mut loads, &pods[1..], 180), [1000], "a new workload");
    }

    #[test]
    fn a_curve_has_the_value_of_its_latest_step() {
        assert_eq!(at("250m", SECOND), Some(250_000_000));
        assert_eq!(at("2s=1 1s=2", SECOND), Some(2_000_000_000));
        for (curve, because) in [
            ("2s=1", "it has not begun"),
            ("x", "no quantity"),
            ("0s=1 x=2", "no duration"),
            ("0s=1 x", "no step"),
            ("", "empty"),
        ] {
            assert_eq!(at(curve, SECOND), None, "{because}");
        }
    }
}
