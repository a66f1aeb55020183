//! The processes that a process has started, and those that they have started.

use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Maximum number of processes that one call kills, in case they start others faster than they are stopped.
const MAX_PROCESSES: usize = 10_000;

/// Kills a process and all of its descendants that are `concerned`. Each is stopped before its children are listed, since the
/// children that it starts after that would be left.
pub fn kill_tree(root: Pid, concerned: impl Fn(Pid) -> bool) {
    let send = |pid: Pid, signal| {
        if concerned(pid) {
            // It may have ended.
            let _ = kill(pid, signal);
        }
    };
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(of) = tree.get(next).copied().filter(|_| next < MAX_PROCESSES) {
        send(of, Signal::SIGSTOP);
        tree.extend(children(of));
        next = next.saturating_add(1);
    }
    tree.into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
}

/// Returns the children of all threads of a process.
pub fn children(of: Pid) -> Vec<Pid> {
    let threads = fs::read_dir(format!("/proc/{of}/task"));
    let lists = threads.into_iter().flatten().flatten();
    let lists = lists.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| -> Vec<Pid> {
        let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
        pids.map(Pid::from_raw).collect()
    };
    lists.flat_map(pids).collect()
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
