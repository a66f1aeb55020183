//! Finds the process of a command, so that it can be killed when its client leaves. The CRI tells neither its id nor
//! has a call that ends it: without this, a command that ignores the end of its streams goes on until its container
//! ends.
//!
//! Commands start one after another in each container, so that a process that is new in the container's cgroup, whose
//! parent is outside of it, is that of the command that has just been started.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use k8s_cri::v1::ContainerStatusRequest;
use nix::unistd::Pid;
use serde::Deserialize;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::Shared;
use super::client::call;
use crate::container_cgroup::ContainerCgroup;
use crate::descendants::kill_tree;

/// Time after which a command counts as one that cannot be found. It keeps the next command waiting.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which a cgroup is looked at: a start takes some 40 ms.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Number of locks, which containers share by their ids.
const LOCKS: usize = 64;

/// The locks of containers in which a command starts.
pub struct Locks([Arc<Mutex<()>>; LOCKS]);

impl Default for Locks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

impl Locks {
    async fn lock(&self, runtime_id: &str) -> Option<OwnedMutexGuard<()>> {
        let mut hasher = DefaultHasher::new();
        runtime_id.hash(&mut hasher);
        let place = usize::try_from(hasher.finish()).unwrap_or_default() % LOCKS;
        let lock = Arc::clone(self.0.get(place)?);
        let locked = tokio::time::timeout(TIMEOUT, lock.lock_owned()).await;
        locked.ok()
    }
}

/// Finds the process of a command that is about to be started.
pub struct Tracker {
    cgroup: ContainerCgroup,
    /// The processes that were there before.
    before: HashSet<i32>,
    program: String,
    /// Held until it is found.
    _lock: OwnedMutexGuard<()>,
}

/// The process of a command.
pub struct Process {
    pid: i32,
    /// The time of its start, which another process of the same id does not have.
    start: String,
    cgroup: ContainerCgroup,
}

impl Shared {
    /// Returns what finds the process of a command that is about to be started; `None` if it cannot be found.
    pub(super) async fn tracker(&self, runtime_id: &str, command: &[String]) -> Option<Tracker> {
        let lock = self.exec_locks.lock(runtime_id).await?;
        let cgroup = ContainerCgroup::of(self.init_process(runtime_id).await?)?;
        Some(Tracker {
            before: cgroup.processes(),
            cgroup,
            program: command.first()?.clone(),
            _lock: lock,
        })
    }

    /// Returns the id of a container's own process, which containerd and CRI-O tell.
    pub(super) async fn init_process(&self, runtime_id: &str) -> Option<i32> {
        #[derive(Deserialize)]
        struct Info {
            pid: i32,
        }
        let request = ContainerStatusRequest {
            container_id: runtime_id.to_owned(),
            verbose: true,
        };
        let answer = call(self.service.runtime().container_status(request)).await;
        let info: Info = serde_json::from_str(answer.ok()?.info.get("info")?).ok()?;
        (info.pid > 0).then_some(info.pid)
    }
}

/// Finds a process, and does not return: the command ends first, or its client leaves.
pub async fn track(tracker: &mut Option<Tracker>, found: &mut Option<Process>) {
    search(tracker, found).await;
    std::future::pending().await
}

/// Looks for a process until it is found, or the time for that is over. The next command may start then.
async fn search(tracker: &mut Option<Tracker>, found: &mut Option<Process>) {
    if let Some(tracker) = tracker {
        let end = Instant::now() + TIMEOUT;
        while found.is_none() && Instant::now() < end {
            *found = tracker.find();
            sleep(POLL_INTERVAL).await;
        }
        if found.is_none() {
            debug!(
                program = tracker.program,
                "cannot find the process of a command"
            );
        }
    }
    *tracker = None;
}

impl Tracker {
    fn find(&self) -> Option<Process> {
        let all = self.cgroup.processes();
        let new = all.iter().filter(|pid| !self.before.contains(pid));
        let mut roots =
            new.filter(|pid| parent(**pid).is_some_and(|parent| !all.contains(&parent)));
        // Until then it is a process of the OCI runtime, whose id may be another.
        let pid = *roots.find(|pid| program(**pid).is_some_and(|name| name == self.program))?;
        Some(Process {
            pid,
            start: start(pid)?,
            cgroup: self.cgroup.clone(),
        })
    }
}

/// Kills a command whose client has left, with all processes that it has started. The client may leave before the
/// process is found.
pub async fn kill(mut tracker: Option<Tracker>, mut process: Option<Process>) {
    search(&mut tracker, &mut process).await;
    let Some(Process {
        pid,
        start: begun,
        cgroup,
    }) = process
    else {
        return debug!("cannot kill a command whose client has left");
    };
    let killing = spawn_blocking(move || {
        if start(pid).as_ref() == Some(&begun) {
            kill_tree(Pid::from_raw(pid), |pid| {
                cgroup.processes().contains(&pid.as_raw())
            });
        }
    });
    if let Err(error) = killing.await {
        warn!(%error, "a command whose client has left may go on");
    }
}

/// Returns the first word of a process's command line.
fn program(pid: i32) -> Option<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let first = line.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(first).into_owned())
}

fn parent(pid: i32) -> Option<i32> {
    field(pid, 4)?.parse().ok()
}

fn start(pid: i32) -> Option<String> {
    field(pid, 22)
}

/// Returns a field of a process's status, by its number in the manual.
fn field(pid: i32, number: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in parentheses, may contain any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let place = number.checked_sub(3)?;
    fields.split_whitespace().nth(place).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_program_a_parent_and_a_start() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(program(own), std::env::args().next());
        assert!(parent(own).unwrap() > 0 && start(own).is_some());
        assert_eq!(start(i32::MAX), None);
    }
}
