//! Measures the available memory, disk space and inodes of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use super::pressure::{Observation, Observations};
use super::threshold::Signal;

/// The file systems of a node.
#[derive(Clone, Debug)]
pub struct FileSystems {
    /// A path on that of the agent's state.
    pub node: PathBuf,
    /// A path on that of the images, if the runtime has any.
    pub images: Option<PathBuf>,
}

impl FileSystems {
    /// Observes all signals. Those that cannot be read are left out.
    pub fn observe(&self) -> Observations {
        let images = self.images.as_deref();
        let all = [
            (Signal::Memory, machine_memory()),
            (Signal::Nodefs, disk(&self.node)),
            (Signal::NodefsInodes, inodes(&self.node)),
            (Signal::Imagefs, images.and_then(disk)),
            (Signal::ImagefsInodes, images.and_then(inodes)),
        ];
        let known = all.into_iter();
        known
            .filter_map(|(signal, observation)| Some((signal, observation?)))
            .collect()
    }
}

/// Returns the memory of this machine.
pub fn machine_memory() -> Option<Observation> {
    memory(&fs::read_to_string("/proc/meminfo").ok()?)
}

/// Returns the memory that is free or holds pages of files that were not used lately, as the kubelet counts it.
fn memory(meminfo: &str) -> Option<Observation> {
    let bytes = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes: i64 = line?.split_whitespace().next()?.parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    let available = bytes("MemFree:")?.saturating_add(bytes("Inactive(file):")?);
    Some(Observation {
        available,
        capacity: bytes("MemTotal:")?,
    })
}

/// Returns the space of the file system of a path.
pub fn disk(path: &Path) -> Option<Observation> {
    let stat = statvfs(path).ok()?;
    let bytes = |blocks: u64| i64::try_from(blocks.saturating_mul(stat.fragment_size())).ok();
    Some(Observation {
        available: bytes(stat.blocks_available())?,
        capacity: bytes(stat.blocks())?,
    })
}

/// Returns the inodes of the file system of a path; `None` if it has no fixed number of them.
fn inodes(path: &Path) -> Option<Observation> {
    let stat = statvfs(path).ok().filter(|stat| stat.files() > 0)?;
    Some(Observation {
        available: i64::try_from(stat.files_available()).ok()?,
        capacity: i64::try_from(stat.files()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_files_that_were_not_used_lately_count_as_available() {
        let meminfo =
            "MemTotal: 1000 kB\nMemFree: 100 kB\nInactive: 90 kB\nInactive(file): 50 kB\n";
        let expected = Observation {
            available: 150 << 10,
            capacity: 1000 << 10,
        };
        assert_eq!(memory(meminfo), Some(expected));
        assert_eq!(memory("MemTotal: 1 kB"), None);
    }

    #[test]
    fn a_file_system_without_inodes_has_no_signal_of_them() {
        assert_eq!(inodes(Path::new("/proc")), None);
    }

    #[test]
    fn this_machine_is_observed() {
        let systems = FileSystems {
            node: ".".into(),
            images: Some("/nowhere/at-all".into()),
        };
        let observed = systems.observe();
        assert_eq!(
            observed.keys().copied().collect::<Vec<_>>(),
            [Signal::Memory, Signal::Nodefs, Signal::NodefsInodes]
        );
        for Observation {
            available,
            capacity,
        } in observed.values()
        {
            assert!(0 < *available && available <= capacity);
        }
    }
}
