//! Stopping a child process for a while.

use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// Stops a process: its connections stay open, and it answers nothing. Returns when all of its threads have stopped.
pub(crate) fn freeze(process: &Child) {
    signal(process, Signal::SIGSTOP);
    waitpid(pid(process), Some(WaitPidFlag::WUNTRACED)).expect("it is a child of this process");
}

/// Sends a signal to a process.
pub(crate) fn signal(process: &Child, signal: Signal) {
    kill(pid(process), signal).expect("it is a child of this process");
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).expect("process ids are small"))
}
