//! A machine of a cluster of several: a network namespace.

use std::path::PathBuf;
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use setpoint_ctl::launcher::{RunningProcess, StateDir};
use tempfile::TempDir;

use crate::cluster::harness::{eventually, refusal, stdout_of};

/// The set-up of the namespaces `m1` to `m3`, with the addresses 10.77.0.1 to 10.77.0.3.
pub const MACHINES: [&str; 20] = [
    "link add br0 type bridge",
    "link set br0 up",
    "netns add m1",
    "-n m1 link set lo up",
    "link add v1 type veth peer name eth0 netns m1",
    "link set v1 master br0 up",
    "-n m1 addr add 10.77.0.1/24 dev eth0",
    "-n m1 link set eth0 up",
    "netns add m2",
    "-n m2 link set lo up",
    "link add v2 type veth peer name eth0 netns m2",
    "link set v2 master br0 up",
    "-n m2 addr add 10.77.0.2/24 dev eth0",
    "-n m2 link set eth0 up",
    "netns add m3",
    "-n m3 link set lo up",
    "link add v3 type veth peer name eth0 netns m3",
    "link set v3 master br0 up",
    "-n m3 addr add 10.77.0.3/24 dev eth0",
    "-n m3 link set eth0 up",
];

/// A machine with a state directory. Its processes are stopped when it is dropped.
pub struct Machine<'a> {
    root: &'a TempDir,
    name: &'static str,
    pub state: PathBuf,
}

impl<'a> Machine<'a> {
    pub fn new(root: &'a TempDir, name: &'static str) -> Self {
        Self::with_state(root, name, name)
    }

    /// Returns a machine with another state directory than that of its name.
    pub fn with_state(root: &'a TempDir, name: &'static str, state: &str) -> Self {
        let state = root.path().join(state);
        Self { root, name, state }
    }

    pub fn inside(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name, program]);
        command.args(arguments).current_dir(self.root.path());
        command.output().unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let state = self.state.display().to_string();
        let arguments = [&["--state", &state], arguments].concat();
        self.inside(env!("CARGO_BIN_EXE_setpoint"), &arguments)
    }

    /// Makes a token for a process of this kind. Returns the command that joins by it.
    pub fn token(&self, kind: &str, more: &[&str]) -> String {
        let arguments = ["token", "create", "--print-join-command", "--for", kind];
        let output = self.run(&[&arguments, more].concat());
        stdout_of(&output).trim().to_owned()
    }

    /// Runs a command that [`Self::token`] has returned on some machine.
    pub fn follow(&self, command: &str) -> Output {
        let words: Vec<_> = command.split_whitespace().skip(1).collect();
        self.run(&words)
    }

    /// Returns why it is refused. Nothing is left behind.
    pub fn refused(&self, command: &str) -> String {
        let why = refusal(&self.follow(command));
        for left in ["control-plane", "pki", "etcd"] {
            assert!(!self.state.join(left).exists(), "{left}: {why}");
        }
        why
    }

    pub fn kubectl(&self, line: &str) -> Output {
        let kubeconfig = self.state.join("kubeconfig").display().to_string();
        let words = ["--kubeconfig", &kubeconfig].into_iter();
        let words: Vec<_> = words.chain(line.split(' ')).collect();
        self.inside("kubectl", &words)
    }

    pub fn state_dir(&self) -> StateDir {
        StateDir::find(self.root.path(), Some(self.state.clone()))
    }

    /// Returns the names of the processes that run.
    pub fn running(&self) -> Vec<String> {
        let names = self.state_dir().recorded().into_iter();
        let runs = |name: &String| RunningProcess::find(&self.state_dir(), name).is_some();
        names.filter(runs).collect()
    }

    /// Kills all processes at once, as when the machine loses its power.
    pub fn die(&self) {
        for name in self.running() {
            if let Some(process) = RunningProcess::find(&self.state_dir(), &name) {
                process.signal(Signal::SIGKILL);
            }
        }
        eventually("all processes have ended", || {
            self.running().is_empty().then_some(())
        });
    }

    /// Returns the rows of the members of etcd that are healthy, and whether all are.
    pub fn healthy_members(&self) -> (usize, bool) {
        let output = self.run(&["members"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let healthy = text
            .lines()
            .filter(|line| line.trim_end().ends_with(" healthy"));
        (healthy.count(), output.status.success())
    }
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}
