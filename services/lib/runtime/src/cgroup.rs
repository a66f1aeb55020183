//! The cgroups of Pods, which have the Pod's limits and are the parents of its containers' cgroups.
//!
//! ```text
//! /setpoint_<cluster>/pod<uid>/<id of the container>
//! ```
//! The engine makes the cgroup of a container below the one that the agent has made. That takes root on the engine's
//! machine, and an engine that names cgroups by their paths (driver `cgroupfs`).

#![warn(clippy::arithmetic_side_effects)]

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::Limits;

/// The period of CPU quotas, and the least quota, in microseconds (the kubelet's).
const PERIOD: i64 = 100_000;
const MIN_QUOTA: i64 = 1000;
/// The range of CPU shares.
const SHARES: (i64, i64) = (2, 262_144);
/// The number of attempts to remove a cgroup, and the pause between them: a killed process stays for a moment.
const REMOVAL_ATTEMPTS: u32 = 20;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// The cgroups that the agent manages.
#[derive(Clone, Debug)]
pub struct Cgroups {
    hierarchy: Hierarchy,
    /// The cgroup of the cluster, as a path with a first slash.
    root: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hierarchy {
    /// One for each controller.
    V1 {
        cpu: PathBuf,
        memory: PathBuf,
        /// The folders of all controllers. The engine makes cgroups in each of them.
        all: Vec<PathBuf>,
    },
    /// One for all controllers.
    V2(PathBuf),
}

impl Cgroups {
    /// Returns the cgroups of a cluster on an engine with this version of cgroups; `None` if this process cannot manage
    /// them.
    pub fn find(is_v2: bool, cluster: &str) -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let hierarchy = match is_v2 {
            true => Hierarchy::v2(&mounts),
            false => Hierarchy::v1(&mounts),
        };
        let cgroups = Self {
            hierarchy: hierarchy?,
            root: root(cluster),
        };
        let mut mounts = cgroups.hierarchy.limiting().into_iter();
        let writable = mounts.all(|mount| access(mount, Access::WRITE_OK).is_ok());
        writable.then_some(cgroups)
    }

    /// Returns the cgroups of a node on this machine; `None` if this process cannot manage them.
    pub fn of_machine(node: &str) -> Option<Self> {
        // Of a machine with both, version 1 has the controllers.
        Self::find(false, node).or_else(|| Self::find(true, node))
    }

    /// Returns the cgroups below one of these; these, if it has no name.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        let root = match name {
            "" => self.root.clone(),
            name => format!("{}/{name}", self.root),
        };
        Self {
            root,
            ..self.clone()
        }
    }

    /// Returns the cgroup of a Pod as the engine names it.
    pub fn of_pod(&self, uid: &str) -> String {
        format!("{}/pod{uid}", self.root)
    }

    /// Makes the cgroup of a Pod.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn create(&self, uid: &str, limits: Limits) -> io::Result<()> {
        self.prepare()?;
        for mount in self.hierarchy.limiting() {
            let made = fs::create_dir(self.folder(mount, uid));
            made.or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Ok(()),
                _ => Err(error),
            })?;
        }
        self.set(uid, limits)
    }

    /// Returns whether a Pod has a cgroup.
    pub fn exists(&self, uid: &str) -> bool {
        let mut mounts = self.hierarchy.limiting().into_iter();
        mounts.all(|mount| self.folder(mount, uid).is_dir())
    }

    /// Returns whether the cgroup of a container is below that of its Pod.
    pub fn holds(&self, uid: &str, container: &str) -> bool {
        let mut mounts = self.hierarchy.limiting().into_iter();
        mounts.all(|mount| self.folder(mount, uid).join(container).is_dir())
    }

    /// Sets the limits of a Pod.
    ///
    /// # Errors
    /// If the kernel refuses it, for example because a container may have more CPU.
    pub fn set(&self, uid: &str, limits: Limits) -> io::Result<()> {
        let (least, most) = SHARES;
        let shares = limits.millicpu_share.saturating_mul(1024) / 1000;
        let shares = shares.clamp(least, most);
        let quota = (limits.millicpu > 0).then(|| quota(limits.millicpu));
        let memory = (limits.memory > 0).then_some(limits.memory);
        let or = |amount: Option<i64>, none: &str| {
            amount.map_or_else(|| none.to_owned(), |amount| amount.to_string())
        };
        let files = match &self.hierarchy {
            Hierarchy::V1 {
                cpu, memory: at, ..
            } => vec![
                (cpu, "cpu.shares", shares.to_string()),
                (cpu, "cpu.cfs_period_us", PERIOD.to_string()),
                (cpu, "cpu.cfs_quota_us", or(quota, "-1")),
                (at, "memory.limit_in_bytes", or(memory, "-1")),
            ],
            Hierarchy::V2(mount) => vec![
                (mount, "cpu.weight", weight(shares).to_string()),
                (mount, "cpu.max", format!("{} {PERIOD}", or(quota, "max"))),
                (mount, "memory.max", or(memory, "max")),
            ],
        };
        let mut files = files.into_iter();
        files
            .try_for_each(|(mount, file, text)| fs::write(self.folder(mount, uid).join(file), text))
    }

    /// Returns the memory that a Pod uses.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn memory_of(&self, uid: &str) -> io::Result<i64> {
        let (mount, file) = match &self.hierarchy {
            Hierarchy::V1 { memory, .. } => (memory, "memory.usage_in_bytes"),
            Hierarchy::V2(mount) => (mount, "memory.current"),
        };
        let text = fs::read_to_string(self.folder(mount, uid).join(file))?;
        text.trim().parse().map_err(io::Error::other)
    }

    /// Sets the limits of a Pod, unless it uses more memory; returns what it uses then.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn lower_or_raise(&self, uid: &str, limits: Limits) -> io::Result<Option<i64>> {
        let usage = self.memory_of(uid)?;
        if limits.memory > 0 && limits.memory < usage {
            return Ok(Some(usage));
        }
        self.set(uid, limits).map(|()| None)
    }

    /// Removes the cgroup of a Pod whose containers are gone.
    ///
    /// # Errors
    /// If it still has processes.
    pub fn remove(&self, uid: &str) -> io::Result<()> {
        let mut mounts = self.hierarchy.all().iter();
        mounts.try_for_each(|mount| remove(&self.folder(mount, uid)))
    }

    /// Removes the cgroups of a cluster whose containers are gone.
    ///
    /// # Errors
    /// If one still has processes.
    pub fn remove_all(&self) -> io::Result<()> {
        for mount in self.hierarchy.all() {
            let root = below(mount, &self.root);
            let Ok(entries) = fs::read_dir(&root) else {
                continue;
            };
            let folders = entries.flatten().map(|entry| entry.path());
            for folder in folders.filter(|path| path.is_dir()) {
                remove(&folder)?;
            }
            remove(&root)?;
        }
        Ok(())
    }

    /// Makes the cgroup of the cluster, whose children have limits.
    fn prepare(&self) -> io::Result<()> {
        for mount in self.hierarchy.limiting() {
            let root = below(mount, &self.root);
            fs::create_dir_all(&root)?;
            if let Hierarchy::V2(mount) = &self.hierarchy {
                let between = root.ancestors().take_while(|folder| *folder != mount);
                let mut from_top: Vec<_> = between.chain([mount.as_path()]).collect();
                from_top.reverse();
                for folder in from_top {
                    fs::write(folder.join("cgroup.subtree_control"), "+cpu +memory")?;
                }
            }
        }
        Ok(())
    }

    fn folder(&self, mount: &Path, uid: &str) -> PathBuf {
        below(mount, &self.of_pod(uid))
    }
}

impl Hierarchy {
    fn v1(mounts: &str) -> Option<Self> {
        let all = parse(mounts, "cgroup");
        let with = |controller: &str| {
            let mut found = all.iter();
            let found = found.find(|(_, options)| options.split(',').any(|one| one == controller));
            found.map(|(path, _)| path.clone())
        };
        Some(Self::V1 {
            cpu: with("cpu")?,
            memory: with("memory")?,
            all: all.into_iter().map(|(path, _)| path).collect(),
        })
    }

    fn v2(mounts: &str) -> Option<Self> {
        let found = parse(mounts, "cgroup2").into_iter().next();
        found.map(|(path, _)| Self::V2(path))
    }

    /// Returns the mounts with the limits of a Pod.
    fn limiting(&self) -> Vec<&Path> {
        match self {
            Self::V1 { cpu, memory, .. } if cpu == memory => vec![cpu],
            Self::V1 { cpu, memory, .. } => vec![cpu, memory],
            Self::V2(mount) => vec![mount],
        }
    }

    fn all(&self) -> &[PathBuf] {
        match self {
            Self::V1 { all, .. } => all,
            Self::V2(mount) => std::slice::from_ref(mount),
        }
    }
}

/// Returns the paths and options of the mounts of a type, each once.
fn parse(mounts: &str, kind: &str) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        if let [_, path, found_kind, options, ..] = fields.as_slice()
            && *found_kind == kind
            && !found.iter().any(|(known, _)| known == Path::new(path))
        {
            found.push((path.into(), (*options).to_owned()));
        }
    }
    found
}

/// Returns the cgroup of a cluster. Its name may have any characters.
fn root(cluster: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || one == '-';
    let name = cluster.chars();
    let name = name.map(|one| if plain(one) { one } else { '_' });
    format!("/setpoint_{}", name.collect::<String>())
}

fn below(mount: &Path, cgroup: &str) -> PathBuf {
    mount.join(cgroup.trim_start_matches('/'))
}

fn quota(millicpu: i64) -> i64 {
    let quota = millicpu.saturating_mul(PERIOD) / 1000;
    quota.max(MIN_QUOTA)
}

/// Returns the weight (1 to 10000) of CPU shares, as runc converts them.
fn weight(shares: i64) -> i64 {
    let (least, most) = SHARES;
    let above = shares.saturating_sub(least).saturating_mul(9999);
    above
        .checked_div(most.saturating_sub(least))
        .unwrap_or_default()
        .saturating_add(1)
}

/// Removes a cgroup. It is not empty for as long as the kernel needs to end a killed process.
fn remove(folder: &Path) -> io::Result<()> {
    let mut attempts = 1..REMOVAL_ATTEMPTS;
    loop {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ResourceBusy && attempts.next().is_some() => {
                sleep(REMOVAL_PAUSE);
            }
            removed => return removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        millicpu_share: 1500,
        millicpu: 2500,
        memory: 64 << 20,
    };

    fn read(folder: &Path, file: &str) -> String {
        fs::read_to_string(folder.join(file)).unwrap()
    }

    /// The values of upstream's `ResourceConfigForPod`.
    #[test]
    fn a_pod_has_its_limits_in_the_files_of_both_versions() {
        let mount = tempfile::tempdir().unwrap();
        let at = mount.path().to_path_buf();
        let v1 = Hierarchy::V1 {
            cpu: at.join("cpu"),
            memory: at.join("memory"),
            all: Vec::new(),
        };
        let of = |hierarchy| Cgroups {
            hierarchy,
            root: root("a/b"),
        };
        let (first, second) = (of(v1), of(Hierarchy::V2(at.clone())));
        first.create("u", LIMITS).unwrap();
        second.create("u", LIMITS).unwrap();
        assert!(first.exists("u") && !first.exists("x"));
        let cpu = at.join("cpu/setpoint_a_b/podu");
        let memory = at.join("memory/setpoint_a_b/podu");
        let unified = at.join("setpoint_a_b/podu");
        assert_eq!(read(&cpu, "cpu.shares"), "1536");
        assert_eq!(read(&cpu, "cpu.cfs_quota_us"), "250000");
        assert_eq!(read(&memory, "memory.limit_in_bytes"), "67108864");
        assert_eq!(read(&unified, "cpu.max"), "250000 100000");
        assert_eq!(read(&unified, "cpu.weight"), "59");
        assert_eq!(read(&unified, "memory.max"), "67108864");
        first.set("u", Limits::default()).unwrap();
        second.set("u", Limits::default()).unwrap();
        assert_eq!(read(&cpu, "cpu.cfs_quota_us"), "-1");
        assert_eq!(read(&memory, "memory.limit_in_bytes"), "-1");
        assert_eq!(read(&unified, "cpu.max"), "max 100000");
        assert_eq!(read(&unified, "memory.max"), "max");
        assert_eq!((quota(1), weight(2), weight(262_144)), (1000, 1, 10_000));
    }

    #[test]
    fn mounts_are_found_by_their_controllers() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let v1 = Hierarchy::v1(mounts).unwrap();
        let expected = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory"];
        assert_eq!(v1.limiting(), expected.map(Path::new));
        assert_eq!(v1.all().len(), 2);
        let unified = Hierarchy::V2("/sys/fs/cgroup/unified".into());
        assert_eq!(Hierarchy::v2(mounts), Some(unified));
        assert_eq!(Hierarchy::v1("proc /proc proc rw 0 0"), None);
    }
}
