//! A process of this machine, told apart from any later one with the same number.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;

use crate::runtime::ContainerId;

/// A process number, and when in the machine's life it was given out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// When it began, in clock ticks since boot.
    pub ticks: u64,
}

impl Process {
    /// No process at all.
    pub const NONE: Self = Self { pid: 0, ticks: 0 };

    /// The process that has this number now.
    pub fn of(pid: i32) -> io::Result<Self> {
        let (_, ticks) = look(pid)?;
        Ok(Self { pid, ticks })
    }

    /// This process.
    pub fn current() -> io::Result<Self> {
        Self::of(std::process::id().cast_signed())
    }

    /// Is it still there, and not only as an entry that nobody has removed?
    fn runs(&self) -> bool {
        look(self.pid)
            .is_ok_and(|(state, ticks)| ticks == self.ticks && !matches!(state, 'Z' | 'X'))
    }

    /// A hold on it; `None` if it is gone.
    #[allow(
        deprecated,
        reason = "`AsyncFd::new` is unsound for descriptors that may be closed by others; this one is owned"
    )]
    pub fn hold(&self) -> io::Result<Option<Hold>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Err(Errno::SRCH) => return Ok(None),
            fd => fd?,
        };
        // Looked at after the open: from here on the number cannot come to mean another process.
        if !self.runs() {
            return Ok(None);
        }
        Ok(Some(Hold(AsyncFd::new(fd)?)))
    }
}

/// The variable that every process of a container inherits: its container's id.
pub const MARKER: &str = "SETPOINT_CONTAINER";

/// How often the processes of a container are looked for before it is left to a family that breeds faster than it dies.
const SWEEPS: usize = 100;
/// The rest between two looks: a process that was killed needs a moment to go.
const REST: Duration = Duration::from_millis(1);

/// Kills all processes of a container, those included that left its group and its session. For a container whose shim
/// is gone, with the family tree that would say whose they are.
///
/// A process that has cleared its environment is not found.
pub fn kill_marked(id: &ContainerId) {
    let entry = format!("{MARKER}={id}");
    for _ in 0..SWEEPS {
        let left = processes().filter(|pid| kill_if_marked(*pid, entry.as_bytes()));
        if left.count() == 0 {
            return;
        }
        std::thread::sleep(REST);
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw)
}

/// Kills a process whose environment has this entry; says whether it has.
fn kill_if_marked(pid: Pid, entry: &[u8]) -> bool {
    // Opened before the look: the number cannot come to mean another process in between.
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let marked = environment
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|one| one == entry));
    marked && pidfd_send_signal(&process, Signal::KILL).is_ok()
}

/// The state of the process that has this number, and when it began.
fn look(pid: i32) -> io::Result<(char, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the program's name, in parentheses, and may hold anything; state is the third, `starttime` the 22nd.
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

/// A process that can be waited for and signalled, though it may be nobody's child here.
pub struct Hold(AsyncFd<OwnedFd>);

impl Hold {
    /// Waits until it has ended.
    pub async fn gone(&self) {
        let _ = self.0.readable().await;
    }

    /// Sends it a signal; to one that has ended, nothing.
    pub fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(self.0.get_ref(), signal);
    }
}
