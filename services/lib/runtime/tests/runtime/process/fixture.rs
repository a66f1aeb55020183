//! Fixtures for the process runtime.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use setpoint_runtime::contract::{Fixture, POLL_INTERVAL, TIMEOUT, Woken, uid};
use setpoint_runtime::process::Processes;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

/// The program of shims.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_runtime-program");

/// A process runtime and its state directory.
pub struct OnDisk {
    fixture: Fixture<Processes>,
    state: Arc<TempDir>,
}

impl Deref for OnDisk {
    type Target = Fixture<Processes>;

    fn deref(&self) -> &Fixture<Processes> {
        &self.fixture
    }
}

/// Returns a runtime with a state directory of its own.
pub fn on_disk() -> OnDisk {
    process_in(Arc::new(tempfile::tempdir().unwrap()))
}

pub fn process() -> Fixture<Processes> {
    on_disk().fixture
}

pub fn process_in(state: Arc<TempDir>) -> OnDisk {
    let woken = Woken::default();
    let runtime = Processes::open(state.path(), PROGRAM, None, woken.wake()).unwrap();
    OnDisk {
        fixture: Fixture::new(runtime, crate::MACHINE, woken, Arc::clone(&state)),
        state,
    }
}

impl OnDisk {
    pub fn file(&self, attempt: u32, name: &str) -> String {
        std::fs::read_to_string(self.path(attempt, name)).unwrap_or_default()
    }

    /// Returns the path of a file of an attempt.
    pub fn path(&self, attempt: u32, name: &str) -> PathBuf {
        let state = self.state.path();
        let folder = state.join("pods").join(uid()).join("main");
        folder.join(attempt.to_string()).join(name)
    }

    /// Returns the directory of a volume on the disk.
    pub fn volume(&self, name: &str) -> PathBuf {
        let state = self.state.path();
        state.join("volumes").join(uid()).join(name)
    }

    pub fn pid(&self, attempt: u32) -> i32 {
        self.file(attempt, "pid").trim().parse().unwrap()
    }
}

/// Returns whether the process exists and is not a zombie.
pub fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.trim().chars().next());
    !matches!(state, None | Some(Some('Z' | 'X')))
}

pub async fn wait_until_gone(pid: i32) {
    let gone = async {
        while is_alive(pid) {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, gone).await.expect("the process ends");
}
