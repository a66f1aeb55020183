//! The process that stands beside a container: it owns the process group and writes down how it ended.
//!
//! It is the agent's own binary, run again as `node-agent shim <folder>`, and lives on when the agent does not.
//! SIGTERM is passed on to the container's group; SIGUSR1 kills the group.

use std::fs;
use std::io::{self, PipeReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, setsid};

use super::confine;
use super::folder::{Folder, Started};
use super::hold::{MARKER, Process};
use super::rotation::Rotation;
use crate::runtime::{ContainerConfig, Exit};

/// What an engine reports for a container whose program could not be started.
const START_ERROR: i32 = 128;
/// How often the dead are swept up before the shim gives in to a family that breeds faster than it dies.
const SWEEPS: usize = 1000;

/// How long a container's output may stay open once its processes are gone.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs the container of this folder to its end.
pub fn main(folder: &Path) -> ExitCode {
    match watch_over(&Folder::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("shim of {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Sleeps until it is told to stop: stands in for a program that only the image would name.
pub fn pause() -> ExitCode {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
    let _ = signals.thread_block();
    let _ = signals.wait();
    ExitCode::SUCCESS
}

fn watch_over(folder: &Folder) -> io::Result<()> {
    let _ = setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let config = folder.config()?;
    folder.claim(&Process::current()?)?;
    let at = Timestamp::now();
    let exit = match spawn(folder, &config) {
        Ok((child, output)) => {
            block_signals(child)?;
            let written = write_down(folder, &config, output)?;
            let process = Process::of(child.as_raw())?;
            folder.write_started(&Started { process, at })?;
            announce();
            let code = wait_for(child);
            sweep(child);
            // Nobody who could write is left; a descriptor that was given away must not keep the shim.
            let _ = written.recv_timeout(LAST_WORDS);
            let exit = Exit::new(code, at, Timestamp::now());
            match folder.start_error() {
                Some(message) => Exit {
                    code: START_ERROR,
                    ..exit.because("StartError", message)
                },
                None => exit,
            }
        }
        Err(error) => Exit::new(START_ERROR, at, Timestamp::now())
            .because("StartError", explain(&config, &error)),
    };
    folder.write_exit(&exit)
}

/// Starts the container's program; gives what it writes as well.
fn spawn(folder: &Folder, config: &ContainerConfig) -> io::Result<(Pid, PipeReader)> {
    let (output, input) = io::pipe()?;
    let mut command = match confine::is_needed(&config.security) {
        true => confine::command(folder),
        false => command(config),
    };
    command
        .env_clear()
        .envs(config.env.iter().map(|(name, value)| (name, value)))
        .env(MARKER, config.id.to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(input.try_clone()?)
        .stderr(input);
    let home = folder.path().ancestors().nth(2);
    match config.working_dir.as_str() {
        "" => home.map(|home| command.current_dir(home)),
        named => Some(command.current_dir(named)),
    };
    let child = command.spawn()?;
    Ok((Pid::from_raw(child.id().cast_signed()), output))
}

/// Keeps what the container writes; the receiver is told when it has ended.
///
/// Only once signals are blocked: a thread inherits that.
fn write_down(
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

/// The container's program and its arguments.
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

/// Why a program could not be started, in an engine's words.
pub(super) fn explain(config: &ContainerConfig, error: &io::Error) -> String {
    let program = config.command.first().map_or("pause", String::as_str);
    let dir = config.working_dir.as_str();
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

/// From here on signals to the shim are meant for the container.
///
/// Only after the spawn: a child inherits which signals are blocked.
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

/// Tells the agent, if it still listens, that the container's state can be read.
fn announce() {
    let _ = io::stdout()
        .write_all(b"\n")
        .and_then(|()| io::stdout().flush());
}

/// The container's exit code, as a shell would say it. Buries whatever else becomes the shim's child meanwhile.
fn wait_for(child: Pid) -> i32 {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => return 128 + signal as i32,
            Err(Errno::ECHILD) => return 255,
            _ => {}
        }
    }
}

/// A container ends with its first process: kills the rest of the group, and those who had left it.
fn sweep(child: Pid) {
    let _ = killpg(child, Signal::SIGKILL);
    for _ in 0..SWEEPS {
        for left in children() {
            let _ = kill(left, Signal::SIGKILL);
        }
        if waitpid(None, None) == Err(Errno::ECHILD) {
            return;
        }
    }
}

fn children() -> Vec<Pid> {
    let me = std::process::id();
    let listed = fs::read_to_string(format!("/proc/{me}/task/{me}/children"));
    let listed = listed.unwrap_or_default();
    let pids = listed.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.map(Pid::from_raw).collect()
}
