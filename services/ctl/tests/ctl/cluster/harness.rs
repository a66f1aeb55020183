//! A cluster under test.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_ctl::launcher::{Pki, RunningProcess, StateDir, address};
use setpoint_host::http_client;
use setpoint_testkit::free_port;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A cluster in a directory of its own. It is stopped when dropped.
pub struct Cluster {
    pub root: TempDir,
    pub ports: [u16; 2],
}

impl Cluster {
    pub fn new() -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_setpoint"));
        assert!(
            binary.with_file_name("gateway").is_file(),
            "build the workspace first: cargo build --workspace"
        );
        Self {
            root: tempfile::tempdir().unwrap(),
            ports: [(); 2].map(|()| free_port()),
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command.args(arguments).current_dir(self.root.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn state_dir(&self) -> StateDir {
        StateDir::find(self.root.path(), None)
    }

    /// Kills the process `<service>-<n>`, and waits until it has ended.
    pub fn kill(&self, name: &str) {
        let running = RunningProcess::find(&self.state_dir(), name).unwrap();
        running.signal(Signal::SIGKILL);
        eventually("the process has ended", || {
            (!running.is_alive()).then_some(())
        });
    }

    /// Waits until a service has a leader; returns its name and its term.
    pub fn leader(&self, service: &str) -> (String, i64) {
        eventually("the service has a leader", || {
            let text = stdout_of(&self.run(&["leaders", "-o", "json"]));
            let standings: Vec<Value> = serde_json::from_str(&text).unwrap();
            let standing = standings.iter().find(|one| one["service"] == service)?;
            Some((
                standing["leader"].as_str()?.to_owned(),
                standing["term"].as_i64()?,
            ))
        })
    }

    pub fn up(&self, more: &[&str]) -> String {
        // A machine has few networks for clusters, and tests that are killed leave theirs.
        let plain = ["--proxy", "none", "--pod-network", "host"];
        self.up_on_network(&[&plain, more].concat())
    }

    /// Starts a cluster whose Pods have networks of their own and whose Services carry traffic, where the machine
    /// allows it.
    pub fn up_on_network(&self, more: &[&str]) -> String {
        let [port, etcd] = self.ports.map(|port| port.to_string());
        let ports = ["up", "--port", &port, "--etcd-port", &etcd];
        stdout_of(&self.run(&[&ports, more].concat()))
    }

    /// Returns the ids of the running processes by name.
    pub fn pids(&self) -> BTreeMap<String, i32> {
        let state_dir = self.state_dir();
        let names = state_dir.recorded().into_iter();
        let running = names.filter_map(|name| RunningProcess::find(&state_dir, &name));
        running.map(|one| (one.name, one.pid)).collect()
    }

    /// Sends a request to the gateway and returns the status code.
    pub fn ask(&self, method: &str, path: &str, body: &'static str) -> u16 {
        let administrator = Pki::credentials(&self.state_dir().pki().administrator());
        let url = format!("{}{path}", address(self.ports[0]));
        let request = Request::builder().method(method).uri(url);
        let request = request.header("content-type", "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let administrator = administrator.unwrap();
        let asked = http_client::send_as(Some(&administrator), request, 1 << 20);
        let answer = Runtime::new().unwrap().block_on(asked);
        answer.unwrap().status.as_u16()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

/// Returns the standard error; asserts that the command failed.
pub fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the standard output; asserts that the command succeeded.
pub fn stdout_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Calls `ask` until it returns a value; panics after a minute.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        sleep(Duration::from_millis(100));
    }
}
