//! Handles to processes that are safe against the reuse of pids.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use crate::ContainerId;

/// A pid with the start time of its process, which identifies the process until the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// The pid.
    pub pid: i32,
    /// Start time, in clock ticks since boot.
    pub ticks: u64,
}

impl Process {
    /// A placeholder that matches no process.
    pub const NONE: Self = Self { pid: 0, ticks: 0 };

    /// Returns the process that currently has this pid.
    pub fn of(pid: i32) -> io::Result<Self> {
        let (_, ticks) = stat(pid)?;
        Ok(Self { pid, ticks })
    }

    /// Returns this process.
    pub fn current() -> io::Result<Self> {
        Self::of(std::process::id().cast_signed())
    }

    /// Returns whether the process exists and is not a zombie.
    fn is_running(&self) -> bool {
        stat(self.pid)
            .is_ok_and(|(state, ticks)| ticks == self.ticks && !matches!(state, 'Z' | 'X'))
    }

    /// Opens a file of the process below /proc.
    ///
    /// # Errors
    /// If the process has ended.
    pub fn open_file(&self, name: &str) -> io::Result<fs::File> {
        let file = fs::File::open(format!("/proc/{}/{name}", self.pid))?;
        // Checked after opening: as long as this process runs, no other has its pid.
        match self.is_running() {
            true => Ok(file),
            false => Err(io::Error::other("the process of the container has ended")),
        }
    }

    /// Opens a handle to the process; `None` if it has ended.
    #[allow(
        deprecated,
        reason = "`AsyncFd::new` is unsound only for descriptors that others may close; this one is owned"
    )]
    pub fn open(&self) -> io::Result<Option<ProcessHandle>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Err(Errno::SRCH) => return Ok(None),
            fd => fd?,
        };
        // Checked after opening: the pidfd keeps referring to this process, even if its pid is reused.
        if !self.is_running() {
            return Ok(None);
        }
        Ok(Some(ProcessHandle(AsyncFd::new(fd)?)))
    }
}

/// Environment variable with the container's id, inherited by every process of a container.
pub const MARKER: &str = "SETPOINT_CONTAINER";

/// Maximum number of passes over all processes in [`kill_marked`], in case they fork faster than they are killed.
const MAX_PASSES: usize = 100;
/// Delay between two passes, in which killed processes end.
const PASS_INTERVAL: Duration = Duration::from_millis(1);

/// Kills all processes of a container, including those that left its process group or session. Needed if the shim is
/// gone, because the process tree no longer tells which processes belong to the container.
///
/// A process that cleared its environment is not found.
pub fn kill_marked(id: &ContainerId) {
    let id = id.to_string();
    for _ in 0..MAX_PASSES {
        let left = processes().filter(|pid| kill_if_marked(*pid, &id));
        if left.count() == 0 {
            return;
        }
        std::thread::sleep(PASS_INTERVAL);
    }
}

/// Returns the processes of this machine.
pub fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw)
}

/// Returns the id of the container that a process belongs to; `None` if it belongs to none, or may not be inspected.
pub fn container_of(pid: Pid) -> Option<String> {
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let mut entries = environment.split(|byte| *byte == 0);
    let id = entries.find_map(|entry| entry.strip_prefix(MARKER.as_bytes())?.strip_prefix(b"="))?;
    String::from_utf8(id.to_vec()).ok()
}

/// Kills a process of the container `id`; returns whether it was killed.
fn kill_if_marked(pid: Pid, id: &str) -> bool {
    // Opened before reading the environment, so that a reused pid is never killed.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let is_marked = container_of(pid).is_some_and(|container| container == id);
    is_marked && pidfd_send_signal(&process, Signal::KILL).is_ok()
}

/// Returns the state and the start time of the process with this pid.
fn stat(pid: i32) -> io::Result<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field, the program's name in parentheses, may contain any characters. The state is the third field,
    // `starttime` the 22nd.
    let mut fields = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest)
        .split_whitespace();
    let state = fields.next().and_then(|state| state.chars().next());
    let ticks = fields.nth(18).and_then(|ticks| ticks.parse().ok());
    state
        .zip(ticks)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// A handle to wait for a process and to signal it. The process need not be a child.
pub struct ProcessHandle(AsyncFd<OwnedFd>);

impl ProcessHandle {
    /// Waits until the process has ended.
    pub async fn gone(&self) {
        let _ = self.0.readable().await;
    }

    /// Sends a signal; does nothing if the process has ended.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(self.0.get_ref(), signal);
    }
}
