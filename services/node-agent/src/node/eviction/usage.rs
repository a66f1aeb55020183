//! The use of a resource by the Pods of a node. Pure.

use std::collections::BTreeMap;

use setpoint_model::Resources;
use setpoint_proto::core::{Pod, PodSpec};
use setpoint_proto::setpoint::PodUsage;
use setpoint_runtime::Space;

use super::threshold::Signal;
use super::victim::{Candidate, Consumption};
use crate::node::usage::Held;

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
                .map(|(name, space)| (name.clone(), amount(space.total())))
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
    use std::collections::HashMap;

    use setpoint_proto::core::{EmptyDirVolumeSource, Volume};

    use super::*;
    use crate::node::usage::by_pod;
    use setpoint_runtime::{ContainerId, ContainerSpace, DiskUsage};

    fn space(bytes: u64) -> Space {
        Space { bytes, inodes: 1 }
    }

    fn container(bytes: u64) -> ContainerSpace {
        ContainerSpace {
            layer: None,
            log: Some(space(bytes)),
        }
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
            containers: HashMap::from([(id(10), container(100)), (id(9), container(1000))]),
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
