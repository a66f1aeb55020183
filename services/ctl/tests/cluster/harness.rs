//! A cluster under test.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use setpoint_testkit::free_port;
use tempfile::TempDir;

/// A cluster in a directory of its own. It is stopped when dropped.
pub struct Cluster {
    pub root: TempDir,
    pub ports: [u16; 3],
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
            ports: [(); 3].map(|()| free_port()),
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

    /// Kills the process `<service>-<n>`, and waits until it has ended.
    pub fn kill(&self, name: &str) {
        let pid = self.pids()[name];
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        eventually("the process has ended", || (!is_alive(pid)).then_some(()));
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
        let [port, etcd, peer] = self.ports.map(|port| port.to_string());
        let ports = [
            "up",
            "--port",
            &port,
            "--etcd-port",
            &etcd,
            "--etcd-peer-port",
            &peer,
        ];
        stdout_of(&self.run(&[&ports, more].concat()))
    }

    /// Returns the recorded process ids by process name.
    pub fn pids(&self) -> BTreeMap<String, i32> {
        let files = fs::read_dir(self.root.path().join(".setpoint/run"))
            .unwrap()
            .flatten();
        let pids = files.filter(|file| file.path().extension().is_some_and(|end| end == "pid"));
        let pid = |file: &fs::DirEntry| {
            fs::read_to_string(file.path())
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        };
        pids.map(|file| {
            (
                file.path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                pid(&file),
            )
        })
        .collect()
    }

    /// Sends a request to the gateway and returns the status code.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> u16 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0])).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
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

/// Whether a process runs. A zombie has an id but no environment, and counts as ended.
pub fn is_alive(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| !environment.is_empty())
}

/// Calls `ask` until it returns a value; panics after a minute.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        sleep(Duration::from_millis(20));
    }
}
