//! A running process of the cluster, found by its recorded id; any `setpoint` command may have started it.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep_until};

use super::state_dir::StateDir;
use super::topology::ProcessSpec;

/// Environment variable that identifies a process of a cluster. A recorded id alone may belong to another process by
/// now.
pub const MARKER_VARIABLE: &str = "SETPOINT_MEMBER";
/// Time to stop before a process is killed: longer than services drain, which is 10 s by default.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between two checks whether a process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the value of [`MARKER_VARIABLE`] for the process `name` of this cluster.
pub fn marker(state_dir: &StateDir, name: &str) -> String {
    state_dir.pid(name).display().to_string()
}

/// A running process of the cluster.
#[derive(Clone, Debug)]
pub struct RunningProcess {
    /// `<service>-<n>`.
    pub name: String,
    /// The process id.
    pub pid: i32,
    state_dir: StateDir,
}

impl RunningProcess {
    /// Returns the process `name`, or `None` if it has no recorded id or the id belongs to another process.
    pub fn find(state_dir: &StateDir, name: &str) -> Option<Self> {
        let pid = parse_number(&fs::read_to_string(state_dir.pid(name)).ok()?)?;
        let running = Self {
            name: name.to_owned(),
            pid,
            state_dir: state_dir.clone(),
        };
        running.is_alive().then_some(running)
    }

    /// Whether the process runs and has our marker. A zombie has no environment and counts as ended.
    pub fn is_alive(&self) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let marker = format!("{MARKER_VARIABLE}={}", marker(&self.state_dir, &self.name));
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == marker.as_bytes())
    }

    /// Returns the port that the process listens on, if recorded.
    pub fn port(&self) -> Option<u16> {
        parse_number(&fs::read_to_string(self.state_dir.port(&self.name)).ok()?)
    }

    /// Whether the process was started with the arguments of `process`; it may have more, after those.
    pub fn is_current(&self, process: &ProcessSpec) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        process
            .args
            .iter()
            .all(|arg| words.next() == Some(arg.as_bytes()))
    }

    /// Sends SIGTERM, and SIGKILL after `timeout`. Returns whether the process stopped without being killed.
    pub async fn stop(&self, timeout: Duration) -> bool {
        self.signal(Signal::SIGTERM);
        // A process frozen by SIGSTOP does not handle SIGTERM before it continues.
        self.signal(Signal::SIGCONT);
        let stopped = self.wait_for_exit(timeout).await;
        if !stopped {
            self.signal(Signal::SIGKILL);
            self.wait_for_exit(timeout).await;
        }
        stopped
    }

    /// Sends a signal if the process still runs.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive() {
            // The process may end between the check and the signal.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// Waits until the process has ended, for `timeout` at most. Returns whether it has.
    pub async fn wait_for_exit(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until(deadline.min(Instant::now() + POLL_INTERVAL)).await;
        }
        true
    }
}

fn parse_number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Scene {
        state_dir: StateDir,
        _root: tempfile::TempDir,
        child: Child,
    }

    /// Starts a shell with the marker of `started` and records it as `demo-0`.
    fn scene(started: &str, script: &str) -> Scene {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        drop(state_dir.lock().unwrap());
        let mut command = Command::new("sh");
        let child = command
            .args(["-c", script])
            .env(MARKER_VARIABLE, marker(&state_dir, started))
            .spawn()
            .unwrap();
        fs::write(state_dir.pid("demo-0"), format!("{}\n", child.id())).unwrap();
        Scene {
            state_dir,
            _root: root,
            child,
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    async fn found(scene: &Scene) -> RunningProcess {
        let found = async {
            loop {
                // The kernel shows the environment of a program shortly after its start.
                match RunningProcess::find(&scene.state_dir, "demo-0") {
                    Some(running) => return running,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(STOP_TIMEOUT, found).await.unwrap()
    }

    #[tokio::test]
    async fn a_process_stops_on_sigterm() {
        let scene = scene("demo-0", "exec tail -f /dev/null");
        let running = found(&scene).await;
        assert!(running.stop(STOP_TIMEOUT).await);
        assert!(RunningProcess::find(&scene.state_dir, "demo-0").is_none());
    }

    #[tokio::test]
    async fn a_process_that_ignores_sigterm_is_killed() {
        let scene = scene(
            "demo-0",
            "trap '' TERM; while :; do tail -f /dev/null; done",
        );
        let running = found(&scene).await;
        // The child of the loop exists once the trap is set.
        let children = format!("/proc/{0}/task/{0}/children", running.pid);
        while fs::read_to_string(&children).unwrap().trim().is_empty() {
            tokio::task::yield_now().await;
        }
        let tail: i32 = parse_number(&fs::read_to_string(&children).unwrap()).unwrap();
        assert!(!running.stop(Duration::from_millis(50)).await);
        // The kernel ends a killed process asynchronously.
        assert!(running.wait_for_exit(STOP_TIMEOUT).await);
        kill(Pid::from_raw(tail), Signal::SIGKILL).unwrap();
    }

    #[tokio::test]
    async fn a_process_without_our_marker_is_not_stopped() {
        let mut scene = scene("other-0", "exec tail -f /dev/null");
        assert!(RunningProcess::find(&scene.state_dir, "demo-0").is_none());
        let stranger = RunningProcess {
            name: "demo-0".to_owned(),
            pid: scene.child.id().try_into().unwrap(),
            state_dir: scene.state_dir.clone(),
        };
        stranger.stop(STOP_TIMEOUT).await;
        assert!(scene.child.try_wait().unwrap().is_none(), "it was killed");
    }
}
