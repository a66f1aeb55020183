//! The parent process of a command that runs beside a container: `node-agent exec <folder> <agent> <tty|plain>
//! <command>…`. It exits with the command's code, and leaves no process behind.
//!
//! SIGUSR1, or the end of the agent, kills the command and everything that it started.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::unistd::{Pid, getppid, setsid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, pidfd_open};

use super::folder::Folder;
use super::{confine, handover, shim, surroundings};
use crate::descendants::children;

/// Exit code of a command that could not be run, as runc reports it.
const CANNOT_RUN: u8 = 126;

/// Runs the command in the container of this directory until it ends.
pub fn main(folder: &Path, agent: &str, tty: bool, command: &[OsString]) -> ExitCode {
    match supervise(&Folder::new(folder), agent, tty, command) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        Err(error) => {
            eprintln!("cannot run the command: {error}");
            ExitCode::from(CANNOT_RUN)
        }
    }
}

fn supervise(folder: &Folder, agent: &str, tty: bool, command: &[OsString]) -> io::Result<i32> {
    let _ = setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // Blocked before the spawn, so that no signal is lost; the command's own mask is reset.
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGUSR1]);
    signals.thread_block()?;
    let agent = open_agent(agent)?;
    let config = handover::of_running(folder)?;
    surroundings::join(folder)?;
    let mut program = confine::exec_command(folder, tty, command);
    shim::set_surroundings(&mut program, folder, &config);
    if tty && config.env.iter().all(|(name, _)| name != "TERM") {
        program.env("TERM", "xterm");
    }
    let child = program.spawn()?;
    let child = Pid::from_raw(child.id().cast_signed());
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            kill_all(child);
        }
    });
    std::thread::spawn(move || {
        let mut ended = [PollFd::new(&agent, PollFlags::IN)];
        while poll(&mut ended, None).is_err() {}
        kill_all(child);
    });
    let code = shim::wait_for_exit(child);
    shim::kill_remaining(child);
    Ok(code)
}

/// Opens a handle of the agent.
///
/// # Errors
/// If it is gone.
fn open_agent(agent: &str) -> io::Result<OwnedFd> {
    let pid = agent.parse().ok();
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let handle = rustix::process::Pid::from_raw(pid)
        .map(|pid| pidfd_open(pid, PidfdFlags::empty()))
        .ok_or(io::ErrorKind::InvalidInput)??;
    // Checked after opening: the pid belongs to the agent as long as that is the parent.
    match getppid().as_raw() == pid {
        true => Ok(handle),
        false => Err(io::Error::other("the agent is gone")),
    }
}

fn kill_all(child: Pid) {
    // The command may not lead a group yet.
    let _ = killpg(child, Signal::SIGKILL);
    for pid in children(Pid::this()) {
        let _ = kill(pid, Signal::SIGKILL);
    }
}
