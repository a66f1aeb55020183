//! The shim: the parent process of one container, which owns its process group and records its end.
//!
//! It is the agent's binary, run as `node-agent shim <folder>`, and outlives the agent. SIGTERM is forwarded to the
//! container's process group; SIGUSR1 kills the group.
//!
//! 2026-11: we chose a parent process for each container over the agent as the parent of all (with pidfds), because the
//! end of a container is then recorded while no agent runs, and only a parent learns an exit code. Wrong if a node has
//! so many containers that a megabyte for each matters.

use std::io::{self, PipeReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};

use super::folder::{self, Folder, Started};
use super::process_handle::{MARKER, Process};
use super::rotation::Rotation;
use super::{confine, handover, surroundings};
use crate::descendants::children;
use crate::{ContainerConfig, Exit, termination};

/// Exit code that containerd reports for a program that could not be started.
const START_ERROR: i32 = 128;
/// Maximum number of passes to kill remaining processes, in case they fork faster than they are killed.
const MAX_PASSES: usize = 1000;

/// Timeout for the output to close once all processes have ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the container in this directory until it ends.
pub fn main(folder: &Path) -> ExitCode {
    match supervise(&Folder::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shim of {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Sleeps until SIGTERM or SIGINT: the placeholder for a container whose command only its image defines.
pub fn pause() -> ExitCode {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    let _ = signals.thread_block();
    let _ = signals.wait();
    ExitCode::SUCCESS
}

fn supervise(folder: &Folder) -> io::Result<()> {
    let _ = setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let config = handover::receive()?;
    folder.claim(&Process::current()?)?;
    let at = Timestamp::now();
    let spawned = surroundings::enter(folder).and_then(|()| spawn(folder, &config));
    let exit = match spawned {
        Ok((child, output)) => {
            block_signals(child)?;
            let output_done = copy_output(folder, &config, output)?;
            let process = Process::of(child.as_raw())?;
            folder.write_started(&Started { process, at })?;
            notify_agent();
            let code = wait_for_exit(child);
            kill_remaining(child);
            // All processes have ended, but one may have passed the descriptor to a process outside the container.
            let _ = output_done.recv_timeout(OUTPUT_TIMEOUT);
            let exit = Exit {
                message: message(folder, &config, code),
                ..Exit::new(code, at, Timestamp::now())
            };
            match folder.start_error() {
                Some(message) => Exit {
                    code: START_ERROR,
                    ..exit.because("StartError", message)
                },
                None => exit,
            }
        }
        Err(error) => Exit::new(START_ERROR, at, Timestamp::now())
            .because("StartError", start_error_message(&config, &error)),
    };
    folder.write_exit(&exit)
}

/// Returns the termination message: the end of the log, if the container asks for it and has failed.
fn message(folder: &Folder, config: &ContainerConfig, code: i32) -> String {
    if code == 0 || !config.termination_message.falls_back_to_logs {
        return String::new();
    }
    folder.log_end(termination::MAX_LOG).map_or_else(
        |error| format!("Error on reading termination message from logs: {error}"),
        |log| termination::of_log(&log),
    )
}

/// Starts the container's program; returns its pid and its output.
fn spawn(folder: &Folder, config: &ContainerConfig) -> io::Result<(Pid, PipeReader)> {
    let (output, input) = io::pipe()?;
    let mounts = folder.mounts()?;
    let (mut command, stdin) = match confine::is_needed(&config.security) || !mounts.is_empty() {
        true => (confine::command(folder), handover::pass_on()?),
        false => (command(config), Stdio::null()),
    };
    set_surroundings(&mut command, folder, config);
    command
        .process_group(0)
        .stdin(stdin)
        .stdout(input.try_clone()?)
        .stderr(input);
    let child = command.spawn()?;
    Ok((Pid::from_raw(child.id().cast_signed()), output))
}

/// Sets the environment and the working directory of a program of the container.
pub(super) fn set_surroundings(command: &mut Command, folder: &Folder, config: &ContainerConfig) {
    command
        .env_clear()
        .envs(config.env.iter().map(|(name, value)| (name, value)))
        .env(MARKER, config.id.to_string());
    // The working directory may be in a volume, which only the next step mounts.
    let mounts = folder.mounts().is_ok_and(|mounts| !mounts.is_empty());
    if let Some(folder) = working_dir(folder, config).filter(|_| !mounts) {
        command.current_dir(folder);
    }
}

/// Returns the working directory of the container: that of its Pod, unless it names one.
pub(super) fn working_dir(folder: &Folder, config: &ContainerConfig) -> Option<PathBuf> {
    match config.working_dir.as_str() {
        "" => folder.path().ancestors().nth(2).map(folder::work_dir),
        named => Some(named.into()),
    }
}

/// Copies the container's output to its log on a thread; the receiver is notified at the end.
///
/// Call it only after signals are blocked, because a thread inherits the mask.
fn copy_output(
    folder: &Folder,
    config: &ContainerConfig,
    output: PipeReader,
) -> io::Result<mpsc::Receiver<()>> {
    let log = Rotation::open(folder, config.log)?;
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || {
        log.drain(output);
        let _ = done.send(());
    });
    Ok(ended)
}

/// Returns the command line of the container, or of the placeholder.
pub(super) fn command(config: &ContainerConfig) -> Command {
    match config.line().split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        None => {
            let mut command = Command::new("/proc/self/exe");
            command
                .arg0(format!("placeholder for {}", config.image))
                .arg("pause");
            command
        }
    }
}

/// Returns the reason why a program could not be started, in the words of runc.
pub(super) fn start_error_message(config: &ContainerConfig, error: &io::Error) -> String {
    let program = config.command.first().map_or("pause", String::as_str);
    exec_error_message(program, &config.working_dir, error)
}

/// Returns the reason why `program` could not be started in a directory, in the words of runc.
pub(super) fn exec_error_message(program: &str, dir: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if !dir.is_empty() && !Path::new(dir).is_dir() => {
            format!("chdir to cwd ({dir:?}) set in config failed: no such file or directory")
        }
        io::ErrorKind::NotFound if !program.contains('/') => {
            format!("exec: {program:?}: executable file not found in $PATH")
        }
        _ => format!("exec: {program:?}: {error}"),
    }
}

/// Forwards signals from now on to the container.
///
/// Call it only after the spawn, because a child inherits the mask.
fn block_signals(child: Pid) -> io::Result<()> {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGUSR1]);
    signals.thread_block()?;
    std::thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            let passed_on = match signal {
                Signal::SIGUSR1 => Signal::SIGKILL,
                other => other,
            };
            let _ = killpg(child, passed_on);
        }
    });
    Ok(())
}

/// Notifies the agent, if it is still connected, that the container's state can be read.
fn notify_agent() {
    let _ = io::stdout()
        .write_all(b"\n")
        .and_then(|()| io::stdout().flush());
}

/// Waits for the container's main process and returns its exit code, 128 + n for signal n. Reaps all other children
/// meanwhile.
pub(super) fn wait_for_exit(child: Pid) -> i32 {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => return 128 + signal as i32,
            Err(Errno::ECHILD) => return 255,
            _ => {}
        }
    }
}

/// Kills the remaining processes of the container: its group, and those that left the group.
pub(super) fn kill_remaining(child: Pid) {
    let _ = killpg(child, Signal::SIGKILL);
    for _ in 0..MAX_PASSES {
        for left in children(Pid::this()) {
            let _ = kill(left, Signal::SIGKILL);
        }
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}
