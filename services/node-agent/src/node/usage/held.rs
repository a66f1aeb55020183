//! The disk space that Pods hold. Pure.

use std::collections::{BTreeMap, HashMap};

use setpoint_proto::core::{PodSpec, Volume};
use setpoint_runtime::{ContainerId, ContainerSpace, DiskUsage, Space};

/// The space that a Pod holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// By the newest attempt at each container.
    pub containers: BTreeMap<String, ContainerSpace>,
    /// By older attempts.
    pub earlier: Space,
    /// By each of its volumes.
    pub volumes: BTreeMap<String, Space>,
}

impl Held {
    /// Returns what the newest attempts and the volumes on disks hold together.
    pub fn total(&self, spec: &PodSpec) -> Space {
        let containers = self.containers.values().map(|space| space.total());
        containers.fold(self.on_disk(spec), Space::plus)
    }

    /// Returns what the volumes on disks hold.
    pub fn on_disk(&self, spec: &PodSpec) -> Space {
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
            pod.earlier = pod.earlier.plus(before.total());
        }
    }
    held
}
