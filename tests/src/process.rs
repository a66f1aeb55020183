//! A process of the cluster under test that can be killed and frozen.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A running program. Dropping it kills it.
pub struct Process {
    name: String,
    command: Vec<String>,
    log: PathBuf,
    child: Child,
}

impl Process {
    /// Starts `command` with its output appended to `<directory>/<name>.log`.
    pub fn start(directory: &Path, name: &str, command: Vec<String>) -> Self {
        let log = directory.join(format!("{name}.log"));
        let child = spawn(&command, &log);
        let name = name.to_owned();
        Self {
            name,
            command,
            log,
            child,
        }
    }

    /// Returns the name given at the start.
    pub fn name(&self) -> &str {
        &self.name
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

    /// Kills the process and starts the same command again.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.command, &self.log);
    }

    /// Returns the output so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn spawn(command: &[String], log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log);
    let log = log.expect("a writable log");
    Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", command[0]))
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends the containers of process nodes whose state is below `directory`; they outlive their agents.
pub(crate) fn end_containers(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            end_containers(&path);
        } else if path.ends_with("shim.json") {
            end_container(&path);
        }
    }
}

fn end_container(shim: &Path) -> Option<()> {
    let shim: serde_json::Value = serde_json::from_slice(&std::fs::read(shim).ok()?).ok()?;
    let pid = i32::try_from(shim["pid"].as_i64()?).ok()?;
    let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    if command.contains("\0shim\0") {
        // The process may have ended in the meantime.
        let _ = kill(Pid::from_raw(pid), Signal::SIGUSR1);
    }
    Some(())
}
