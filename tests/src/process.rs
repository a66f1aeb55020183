//! A process of the cluster under test that can be killed and frozen.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait::PAUSE;

/// A running program. Dropping it kills it.
pub struct Process {
    command: Command,
    child: Child,
}

impl Process {
    /// Starts a command.
    pub fn start(mut command: Command) -> Self {
        let child = spawn(&mut command);
        Self { command, child }
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: SIGSTOP freezes the process, SIGCONT continues it.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).expect("process ids are small");
        kill(Pid::from_raw(pid), signal).expect("it runs");
    }

    /// Kills the process and waits for its end.
    pub fn kill(&mut self) {
        // Fails if the process has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for the end. Returns whether the exit code was 0.
    pub fn stop(&mut self) -> bool {
        self.signal(Signal::SIGTERM);
        self.child.wait().expect("it was ours").success()
    }

    /// Sends SIGTERM and waits for the end. Returns whether the exit code was 0; `None` if it still runs after `limit`.
    pub fn stop_within(&mut self, limit: Duration) -> Option<bool> {
        self.signal(Signal::SIGTERM);
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.success());
            }
            std::thread::sleep(PAUSE);
        }
        None
    }

    /// Returns whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the process and starts the same command again.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&mut self.command);
    }
}

fn spawn(command: &mut Command) -> Child {
    let started = command.spawn();
    started.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
