//! A process of the cluster that was started earlier, perhaps by another `setpoint`.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep_until};

use crate::folder::Folder;
use crate::roster::Member;

/// The environment variable by which a process is known as ours. Process ids are used again, this is not.
pub const MARK: &str = "SETPOINT_MEMBER";
/// Longer than a service takes to drain, which is 10 s unless its settings say otherwise.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Between two looks at whether a process is gone.
const LOOK: Duration = Duration::from_millis(20);

/// What [`MARK`] is for `name` of this cluster.
pub fn mark(folder: &Folder, name: &str) -> String {
    folder.pid(name).display().to_string()
}

/// Deletes what is recorded about a process that does not run any more.
pub fn forget(folder: &Folder, name: &str) {
    for path in [folder.pid(name), folder.port(name)] {
        // Most often it is not there, and what remains is recognised as stale.
        let _ = fs::remove_file(path);
    }
}

/// A process of the cluster that runs now.
#[derive(Clone, Debug)]
pub struct Running {
    /// `<service>-<n>`.
    pub name: String,
    /// Its process id.
    pub pid: i32,
    folder: Folder,
}

impl Running {
    /// The process `name`, if its id is known, and still is the id of that process.
    pub fn find(folder: &Folder, name: &str) -> Option<Self> {
        let pid = number(&fs::read_to_string(folder.pid(name)).ok()?)?;
        let running = Self {
            name: name.to_owned(),
            pid,
            folder: folder.clone(),
        };
        running.is_alive().then_some(running)
    }

    /// Does it run, as ours? A zombie has no environment, and so does not.
    pub fn is_alive(&self) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        let mark = format!("{MARK}={}", mark(&self.folder, &self.name));
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes())
    }

    /// The port it was told to listen on.
    pub fn port(&self) -> Option<u16> {
        number(&fs::read_to_string(self.folder.port(&self.name)).ok()?)
    }

    /// Was it told what `member` is told now?
    pub fn agrees(&self, member: &Member) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0).skip(1);
        member
            .args
            .iter()
            .all(|arg| words.next() == Some(arg.as_bytes()))
    }

    /// Asks it to stop, and makes it stop once `patience` is over. Answers whether it stopped by itself.
    pub async fn stop(&self, patience: Duration) -> bool {
        self.signal(Signal::SIGTERM);
        // One that somebody froze could not follow.
        self.signal(Signal::SIGCONT);
        let willing = self.gone(patience).await;
        if !willing {
            self.signal(Signal::SIGKILL);
            self.gone(patience).await;
        }
        willing
    }

    /// Sends a signal, if it still runs.
    pub fn signal(&self, signal: Signal) {
        if self.is_alive() {
            // It may end between the look and the signal, which is what was wanted.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// Waits until it has ended, and answers whether it has within `patience`.
    pub async fn gone(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep_until(deadline.min(Instant::now() + LOOK)).await;
        }
        true
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Option<N> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    struct Scene {
        folder: Folder,
        _root: tempfile::TempDir,
        child: Child,
    }

    /// A shell that was started for `started` and is recorded as `demo-0`.
    fn scene(started: &str, script: &str) -> Scene {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::find(root.path(), None);
        drop(folder.lock().unwrap());
        let mut command = Command::new("sh");
        let child = command
            .args(["-c", script])
            .env(MARK, mark(&folder, started))
            .spawn()
            .unwrap();
        fs::write(folder.pid("demo-0"), format!("{}\n", child.id())).unwrap();
        Scene {
            folder,
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

    async fn found(scene: &Scene) -> Running {
        let found = async {
            loop {
                // The kernel shows a program's environment a moment after it has started it.
                match Running::find(&scene.folder, "demo-0") {
                    Some(running) => return running,
                    None => tokio::task::yield_now().await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap()
    }

    #[tokio::test]
    async fn a_process_stops_when_asked() {
        let scene = scene("demo-0", "exec tail -f /dev/null");
        let running = found(&scene).await;
        assert!(running.stop(PATIENCE).await);
        assert!(Running::find(&scene.folder, "demo-0").is_none());
    }

    #[tokio::test]
    async fn a_process_that_does_not_listen_is_killed() {
        let scene = scene(
            "demo-0",
            "trap '' TERM; while :; do tail -f /dev/null; done",
        );
        let running = found(&scene).await;
        // The trap must be set before the signal comes: wait for the loop's child.
        let children = format!("/proc/{0}/task/{0}/children", running.pid);
        while fs::read_to_string(&children).unwrap().trim().is_empty() {
            tokio::task::yield_now().await;
        }
        let tail: i32 = number(&fs::read_to_string(&children).unwrap()).unwrap();
        assert!(!running.stop(Duration::from_millis(50)).await);
        // The kernel takes its time to end what is killed.
        assert!(running.gone(PATIENCE).await);
        kill(Pid::from_raw(tail), Signal::SIGKILL).unwrap();
    }

    #[tokio::test]
    async fn a_stranger_with_a_recorded_id_is_left_alone() {
        let mut scene = scene("other-0", "exec tail -f /dev/null");
        assert!(Running::find(&scene.folder, "demo-0").is_none());
        let stranger = Running {
            name: "demo-0".to_owned(),
            pid: scene.child.id().try_into().unwrap(),
            folder: scene.folder.clone(),
        };
        stranger.stop(PATIENCE).await;
        assert!(scene.child.try_wait().unwrap().is_none(), "it was killed");
    }
}
