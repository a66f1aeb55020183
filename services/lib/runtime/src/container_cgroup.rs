//! The cgroup of a container, which the kernel tells by one of its processes, and what the kernel has counted there.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Reading;

/// Where hierarchies are mounted: that of version 2, or a folder for each controller.
const MOUNT: &str = "/sys/fs/cgroup";

/// The folders of the cgroup of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerCgroup {
    /// Those of version 1, one for each controller.
    V1 {
        /// That of the CPU time.
        cpu: PathBuf,
        /// That of the memory.
        memory: PathBuf,
    },
    /// That of version 2.
    V2(PathBuf),
}

impl ContainerCgroup {
    /// Returns that of a process; `None` if the process has ended.
    pub fn of(pid: i32) -> Option<Self> {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        Self::parse(&groups)
    }

    /// Parses the content of a file /proc/…/cgroup. Of a machine with both versions, the second has no controllers.
    fn parse(groups: &str) -> Option<Self> {
        let path = |controller: &str| {
            groups.lines().find_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (names, path) = rest.split_once(':')?;
                let is_it = names.split(',').any(|name| name == controller);
                let place = Path::new(MOUNT).join(controller);
                is_it.then(|| place.join(path.trim_start_matches('/')))
            })
        };
        match (path("cpuacct"), path("memory")) {
            (Some(cpu), Some(memory)) => Some(Self::V1 { cpu, memory }),
            _ => Some(Self::V2(path("")?)),
        }
    }

    /// Returns its processes.
    pub fn processes(&self) -> HashSet<i32> {
        let (Self::V1 { memory: folder, .. } | Self::V2(folder)) = self;
        let list = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Returns what its processes have used; `None` if it is gone. Memory of the page cache that can be reclaimed at
    /// once is not counted.
    pub fn reading(&self) -> Option<Reading> {
        let (cpu, memory, reclaimable) = match self {
            Self::V1 { cpu, memory } => (
                Duration::from_nanos(number(&cpu.join("cpuacct.usage"))?),
                number(&memory.join("memory.usage_in_bytes"))?,
                counter(&memory.join("memory.stat"), "total_inactive_file")?,
            ),
            Self::V2(folder) => (
                Duration::from_micros(counter(&folder.join("cpu.stat"), "usage_usec")?),
                number(&folder.join("memory.current"))?,
                counter(&folder.join("memory.stat"), "inactive_file")?,
            ),
        };
        Some(Reading {
            cpu,
            memory: memory.saturating_sub(reclaimable),
        })
    }
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Returns a counter of a file that has one in each line.
fn counter(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let mut counters = text.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = counters.find(|(other, _)| *other == name)?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cgroup_of_a_container_is_that_of_its_hierarchies() {
        let v1 = "9:memory:/setpoint_a/podu/c\n3:cpu,cpuacct:/setpoint_a/podu/c\n0::/\n";
        let expected = ContainerCgroup::V1 {
            cpu: "/sys/fs/cgroup/cpuacct/setpoint_a/podu/c".into(),
            memory: "/sys/fs/cgroup/memory/setpoint_a/podu/c".into(),
        };
        assert_eq!(ContainerCgroup::parse(v1), Some(expected));
        let expected = ContainerCgroup::V2("/sys/fs/cgroup/setpoint_a/podu/c".into());
        assert_eq!(
            ContainerCgroup::parse("0::/setpoint_a/podu/c\n"),
            Some(expected)
        );
        assert_eq!(ContainerCgroup::parse(""), None);
    }

    #[test]
    fn the_usage_is_what_the_files_of_both_versions_count() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_path_buf();
        let write = |file: &str, text: &str| fs::write(at.join(file), text).unwrap();
        let (v1, v2) = (
            ContainerCgroup::V1 {
                cpu: at.clone(),
                memory: at.clone(),
            },
            ContainerCgroup::V2(at.clone()),
        );
        assert_eq!((v1.reading(), v2.reading()), (None, None));
        write("cpuacct.usage", "1500000000\n");
        write("memory.usage_in_bytes", "4096\n");
        write("cpu.stat", "usage_usec 2500000\nuser_usec 1\n");
        write("memory.current", "8192\n");
        write(
            "memory.stat",
            "cache 1\ninactive_file 192\ntotal_inactive_file 96\n",
        );
        let first = Reading {
            cpu: Duration::from_millis(1500),
            memory: 4000,
        };
        let second = Reading {
            cpu: Duration::from_millis(2500),
            memory: 8000,
        };
        assert_eq!((v1.reading(), v2.reading()), (Some(first), Some(second)));
        write("memory.current", "100\n");
        assert_eq!(v2.reading().unwrap().memory, 0);
    }
}
