//! The use of a resource by the Pods of a node. Pure.

use std::collections::{BTreeMap, HashMap};

use setpoint_model::Resources;
use setpoint_proto::core::{Pod, PodSpec, Volume};
use setpoint_proto::setpoint::PodUsage;

use super::threshold::Signal;
use super::victim::{Candidate, Consumption};
use crate::runtime::{ContainerId, DiskUsage, Space};

/// The space that a Pod holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// By the newest attempt at each container.
    pub containers: BTreeMap<String, Space>,
    /// By older attempts.
    pub earlier: Space,
    /// By each of its volumes.
    pub volumes: BTreeMap<String, Space>,
}

impl Held {
    /// Returns what the newest attempts and the volumes on disks hold together.
    pub fn total(&self, spec: &PodSpec) -> Space {
        let containers = self.containers.values().copied();
        containers.fold(self.on_disk(spec), Space::plus)
    }

    /// Returns what the volumes on disks hold.
    fn on_disk(&self, spec: &PodSpec) -> Space {
        let local = spec.volumes.iter().filter(|volume| is_local(volume));
        let held = local.filter_map(|volume| self.volumes.get(&volume.name).copied());
        held.fold(Space::default(), Space::plus)
    }
}

/// Returns whether a volume is on the disk of the node and ends with its Pod.
fn is_local(volume: &Volume) -> bool {
    let source = &volume.volume_source;
    let empty = source.empty_dir.as_ref();
    empty.is_some_and(|empty| empty.medium != "Memory") || source.config_map.is_some()
}

/// Returns what each Pod holds, by its uid.
pub fn by_pod(disk: DiskUsage) -> HashMap<String, Held> {
    let mut held: HashMap<String, Held> = HashMap::new();
    for (uid, volumes) in disk.volumes {
        held.entry(uid).or_default().volumes = volumes;
    }
    let mut containers: Vec<_> = disk.containers.into_iter().collect();
    containers.sort_by_key(|(id, _)| id.attempt);
    for (ContainerId { uid, name, .. }, space) in containers {
        let pod = held.entry(uid).or_default();
        if let Some(before) = pod.containers.insert(name, space) {
            pod.earlier = pod.earlier.plus(before);
        }
    }
    held
}

/// The use of one resource by a Pod, in the unit of a signal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// By container.
    containers: BTreeMap<String, i64>,
    /// The rest.
    others: i64,
}

impl Usage {
    /// Returns the use of a disk by a Pod.
    pub fn of_disk(signal: Signal, held: &Held, spec: &PodSpec) -> Self {
        let amount = |space: Space| match signal.counts_files() {
            true => signed(space.inodes),
            false => signed(space.bytes),
        };
        let containers = held.containers.iter();
        Self {
            containers: containers
                .map(|(name, space)| (name.clone(), amount(*space)))
                .collect(),
            others: amount(held.on_disk(spec).plus(held.earlier)),
        }
    }

    /// Returns the use of memory by a Pod.
    pub fn of_memory(pod: PodUsage) -> Self {
        let containers = pod.containers.into_iter();
        Self {
            containers: containers
                .map(|one| (one.name, signed(one.memory_bytes)))
                .collect(),
            others: 0,
        }
    }

    fn sum(&self) -> i64 {
        let containers = self.containers.values();
        containers.fold(self.others, |sum, one| sum.saturating_add(*one))
    }
}

/// Returns a Pod as a candidate for an eviction because of a resource.
pub fn candidate(pod: &Pod, resource: &str, usage: Option<&Usage>) -> Candidate {
    let amount = |resources: Resources| match resource {
        "memory" => resources.memory,
        other => resources.others.get(other).copied().unwrap_or_default(),
    };
    let all = pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let requests: BTreeMap<_, _> = all
        .map(|one| {
            (
                one.name.as_str(),
                amount(Resources::of_list(&one.resources.requests)),
            )
        })
        .collect();
    let consumption = |(name, usage): (&String, &i64)| Consumption {
        name: name.clone(),
        usage: *usage,
        request: requests.get(name.as_str()).copied().unwrap_or_default(),
    };
    Candidate {
        uid: pod.metadata.uid.clone(),
        priority: pod.spec.priority.unwrap_or_default(),
        usage: usage.map(Usage::sum),
        request: amount(Resources::of_pod(&pod.spec)),
        containers: usage
            .into_iter()
            .flat_map(|usage| &usage.containers)
            .map(consumption)
            .collect(),
    }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::EmptyDirVolumeSource;

    use super::*;

    fn space(bytes: u64) -> Space {
        Space { bytes, inodes: 1 }
    }

    fn volume(name: &str, medium: &str) -> Volume {
        let mut volume = Volume {
            name: name.into(),
            ..Volume::default()
        };
        volume.volume_source.empty_dir = Some(EmptyDirVolumeSource {
            medium: medium.into(),
            ..EmptyDirVolumeSource::default()
        });
        volume
    }

    #[test]
    fn volumes_in_memory_and_older_attempts_count_only_where_they_use_the_resource() {
        let id = |attempt| ContainerId {
            uid: "uid".into(),
            name: "web".into(),
            attempt,
        };
        let volumes = [
            ("disk".to_owned(), space(7)),
            ("memory".to_owned(), space(5)),
        ];
        let disk = DiskUsage {
            containers: HashMap::from([(id(10), space(100)), (id(9), space(1000))]),
            volumes: HashMap::from([("uid".to_owned(), volumes.into())]),
        };
        let held = by_pod(disk).remove("uid").unwrap();
        let spec = PodSpec {
            volumes: vec![volume("disk", ""), volume("memory", "Memory")],
            ..PodSpec::default()
        };
        assert_eq!(held.total(&spec).bytes, 107);
        assert_eq!(Usage::of_disk(Signal::Nodefs, &held, &spec).sum(), 1107);
        let files = Usage::of_disk(Signal::NodefsInodes, &held, &spec);
        assert_eq!(files.sum(), 3);
    }
}
