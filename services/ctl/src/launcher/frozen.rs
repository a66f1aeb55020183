//! Processes that are frozen, and use no CPU until they continue: those of the cluster, and those of its Pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::process::RunningProcess;
use super::state_dir::StateDir;

/// Environment variable with which the process runtime marks all processes of a container: `<uid of the Pod>/…`.
const CONTAINER: &str = "SETPOINT_CONTAINER";
/// The number of times that Pods are looked through for processes that others have started meanwhile.
const PASSES: usize = 10;

/// Returns the processes of the cluster that run.
pub fn running(state_dir: &StateDir) -> Vec<RunningProcess> {
    let names = state_dir.recorded().into_iter();
    names
        .filter_map(|name| RunningProcess::find(state_dir, &name))
        .collect()
}

/// Returns whether the cluster runs, and all its processes are frozen.
pub fn is_paused(state_dir: &StateDir) -> bool {
    let running = running(state_dir);
    !running.is_empty() && running.iter().all(|process| is_frozen(process.pid))
}

/// Returns whether a process is frozen.
pub fn is_frozen(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, _)| state == 'T')
}

/// Freezes the processes of the Pods of the cluster's nodes, or lets them continue. Returns how many there are.
pub fn signal_pods(state_dir: &StateDir, signal: Signal) -> usize {
    let mut signalled = BTreeSet::new();
    for _ in 0..PASSES {
        let found = of_pods(state_dir);
        let new: Vec<_> = found.difference(&signalled).copied().collect();
        if new.is_empty() {
            break;
        }
        for pid in new {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid), signal);
            signalled.insert(pid);
        }
    }
    signalled.len()
}

/// Returns the processes of Pods: those that are marked, and what they have started.
fn of_pods(state_dir: &StateDir) -> BTreeSet<i32> {
    let pods = pods(state_dir);
    let parents: BTreeMap<_, _> = processes()
        .filter_map(|pid| Some((pid, stat(pid)?.1)))
        .collect();
    let marked = parents.keys().filter(|pid| {
        let uid = container_of(**pid).and_then(|id| Some(id.split_once('/')?.0.to_owned()));
        uid.is_some_and(|uid| pods.contains(&uid))
    });
    let mut found: BTreeSet<_> = marked.copied().collect();
    loop {
        let children = parents
            .iter()
            .filter(|(pid, parent)| found.contains(parent) && !found.contains(pid));
        let children: Vec<_> = children.map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            return found;
        }
        found.extend(children);
    }
}

/// Returns the uids of the Pods that process nodes of the cluster have.
fn pods(state_dir: &StateDir) -> BTreeSet<String> {
    let folders = state_dir.nodes().into_iter().map(|node| node.join("pods"));
    let entries = folders.flat_map(|pods| fs::read_dir(pods).into_iter().flatten().flatten());
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn container_of(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        variable
            .strip_prefix(CONTAINER.as_bytes())?
            .strip_prefix(b"=")
    })?;
    String::from_utf8(value.to_vec()).ok()
}

/// Returns the state and the parent of a process.
fn stat(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain any character.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn eventually(what: &str, is: impl Fn() -> bool) {
        for _ in 0..1000 {
            if is() {
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("{what}");
    }

    #[test]
    fn processes_of_pods_are_frozen_with_what_they_have_started() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        fs::create_dir_all(state_dir.node("node-0").join("pods/uid-1")).unwrap();
        let start = |uid: &str| {
            let mut command = Command::new("sh");
            // The child clears its environment, which has the mark.
            let script = "env -i tail -f /dev/null & wait";
            let child = command
                .args(["-c", script])
                .env(CONTAINER, format!("{uid}/web/0"));
            Killed(child.spawn().unwrap())
        };
        let (ours, others) = (start("uid-1"), start("uid-2"));
        let [own, other] = [&ours, &others].map(|child| child.0.id().cast_signed());
        eventually("it has started a child", || of_pods(&state_dir).len() == 2);
        assert_eq!(signal_pods(&state_dir, Signal::SIGSTOP), 2);
        eventually("all are frozen", || {
            of_pods(&state_dir).into_iter().all(is_frozen)
        });
        assert!(is_frozen(own) && !is_frozen(other));
        assert_eq!(signal_pods(&state_dir, Signal::SIGCONT), 2);
        eventually("all continue", || {
            !of_pods(&state_dir).into_iter().any(is_frozen)
        });
        for pid in of_pods(&state_dir) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        signal_others(&others);
    }

    /// Ends the child of a shell that no Pod of the cluster has.
    fn signal_others(shell: &Killed) {
        let parent = shell.0.id().cast_signed();
        for pid in processes().filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent)) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
