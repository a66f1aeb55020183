//! The processes that a process has started, and those that they have started.

use std::time::{Duration, Instant};
use std::{fs, thread};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Maximum number of processes that one call kills, in case they start others faster than they are stopped.
const MAX_PROCESSES: usize = 10_000;

/// The time in which all of them have to stop. One that waits for a device does so later.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Kills a process and all of its descendants that are `concerned`. Each is stopped before its children are listed,
/// since the children that it starts after that would be left. Blocks until they have stopped.
pub fn kill_tree(root: Pid, concerned: impl Fn(Pid) -> bool) {
    let end = Instant::now() + STOP_TIMEOUT;
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(of) = tree.get(next).copied().filter(|_| next < MAX_PROCESSES) {
        if concerned(of) {
            stop(of, end);
        }
        tree.extend(children(of));
        next = next.saturating_add(1);
    }
    for pid in tree.into_iter().filter(|pid| concerned(*pid)) {
        // It may have ended.
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Stops a process, and waits until it has stopped: a child that it is just starting is listed only then.
fn stop(process: Pid, end: Instant) {
    while kill(process, Signal::SIGSTOP).is_ok() && is_running(process) && Instant::now() < end {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Returns whether any thread of a process has neither stopped nor ended.
fn is_running(process: Pid) -> bool {
    // The name before the state may have parentheses.
    let state = |stat: String| {
        stat.rsplit_once(") ")
            .and_then(|(_, state)| state.chars().next())
    };
    let mut states = of_threads(process, "stat").filter_map(state);
    states.any(|state| matches!(state, 'R' | 'S' | 'D'))
}

/// Returns the children of all threads of a process.
pub fn children(of: Pid) -> Vec<Pid> {
    let lists = of_threads(of, "children");
    let pids = |list: String| -> Vec<Pid> {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.map(Pid::from_raw).collect()
    };
    lists.flat_map(pids).collect()
}

/// Returns the content of this file of each thread of a process.
fn of_threads(process: Pid, file: &str) -> impl Iterator<Item = String> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    threads.filter_map(move |thread| fs::read_to_string(thread.path().join(file)).ok())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use setpoint_testkit::processes_with;

    use super::*;

    #[test]
    fn processes_that_start_others_all_the_time_are_killed_with_all_of_them() {
        let mark = format!("1000.{}", std::process::id());
        let script = format!("while :; do setsid sleep {mark} & done");
        let starting = Command::new("sh")
            .args(["-c", &script])
            .stderr(Stdio::null())
            .spawn();
        let mut starting = starting.unwrap();
        while processes_with(&mark) < 20 {
            std::thread::yield_now();
        }
        kill_tree(Pid::from_raw(starting.id().cast_signed()), |_| true);
        starting.wait().unwrap();
        while processes_with(&mark) > 0 {
            std::thread::yield_now();
        }
    }
}
