//! Reads the resource usage of containers from /proc and from the directories of their files.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::Pid;

use super::process_handle::{container_of, processes};
use crate::volumes::Volumes;
use crate::{ContainerId, ContainerSpace, DiskUsage, Reading, Space};

/// Sums up the usage of all processes of each container, those that left its process group or session included. The CPU
/// time of ended processes is included once their parent has waited for them.
pub fn readings(running: Vec<ContainerId>) -> HashMap<ContainerId, Reading> {
    let mut sums: HashMap<String, Reading> = HashMap::new();
    for pid in processes() {
        let Some((container, reading)) = container_of(pid).zip(reading(pid)) else {
            continue;
        };
        let sum = sums.entry(container).or_default();
        sum.cpu = sum.cpu.saturating_add(reading.cpu);
        sum.memory = sum.memory.saturating_add(reading.memory);
    }
    let read = |id: ContainerId| sums.get(&id.to_string()).map(|sum| (id, *sum));
    running.into_iter().filter_map(read).collect()
}

/// Measures the logs of containers, whose files are below `pods`, and the volumes of their Pods below `volumes`.
pub fn disk_usage(pods: &Path, volumes: &Volumes, containers: Vec<ContainerId>) -> DiskUsage {
    let uids: HashSet<_> = containers.iter().map(|id| id.uid.clone()).collect();
    let volumes = uids.into_iter().map(|uid| {
        let found = volumes.folders(&uid).into_iter();
        let sizes = found.filter_map(|(name, folder)| Some((name, Space::of(&folder).ok()?)));
        (uid, sizes.collect())
    });
    let size = |id: ContainerId| {
        let folder = pods.join(&id.uid).join(&id.name);
        let log = log_space(&folder.join(id.attempt.to_string())).ok()?;
        let space = ContainerSpace {
            layer: None,
            log: Some(log),
        };
        Some((id, space))
    };
    DiskUsage {
        volumes: volumes.collect(),
        containers: containers.into_iter().filter_map(size).collect(),
    }
}

/// Returns the space of a container's log, with the older files that it was rotated to.
fn log_space(folder: &Path) -> io::Result<Space> {
    let entries = fs::read_dir(folder)?.flatten();
    let logs = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"log"));
    // A file may be removed meanwhile.
    let spaces = logs.filter_map(|log| Space::of_file(&log.path()).ok());
    Ok(spaces.fold(Space::default(), Space::plus))
}

fn reading(pid: Pid) -> Option<Reading> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    of_stat(&stat)
}

/// Parses the fields `utime`, `stime`, `cutime`, `cstime` (14 to 17) and `rss` (24) of a process.
fn of_stat(stat: &str) -> Option<Reading> {
    // The second field, the program's name in parentheses, may contain any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let ticks = (0..4).try_fold(0, |sum: u64, _| Some(sum.saturating_add(number()?)))?;
    let pages = fields.nth(6)?.parse::<u64>().ok()?;
    Some(Reading {
        cpu: Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64),
        memory: pages.saturating_mul(page_size() as u64),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_count_for_the_container_or_the_volume_that_has_them() {
        let state = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = state.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, vec![7; 100_000]).unwrap();
        };
        write("pods/uid/web/0/log");
        write("pods/uid/web/0/config.json");
        write("volumes/uid/cache/deep/file");
        write("volumes/other/cache/file");
        let id = |name: &str| ContainerId {
            uid: "uid".into(),
            name: name.into(),
            attempt: 0,
        };
        let volumes = Volumes::of(state.path());
        let pods = state.path().join("pods");
        let usage = disk_usage(&pods, &volumes, vec![id("web"), id("log")]);
        let used = 100_000..200_000;
        assert!(used.contains(&usage.containers[&id("web")].total().bytes));
        assert!(!usage.containers.contains_key(&id("log")));
        assert!(used.contains(&usage.volumes["uid"]["cache"].bytes));
        assert_eq!(usage.volumes.len(), 1);
    }

    #[test]
    fn time_of_waited_children_is_counted() {
        let stat = "7 (a) b) S 1 7 7 0 -1 0 0 0 0 0 100 50 30 20 20 0 1 0 900 4096 5 0";
        let reading = of_stat(stat).unwrap();
        let seconds = 200.0 / clock_ticks_per_second() as f64;
        assert_eq!(reading.cpu, Duration::from_secs_f64(seconds));
        assert_eq!(reading.memory, 5 * page_size() as u64);
        assert_eq!(of_stat("7 (a) S 1"), None);
    }
}
