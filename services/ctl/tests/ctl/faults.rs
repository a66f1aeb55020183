//! Failures of `setpoint up`: the error messages, and that no process is left behind.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_ctl::launcher::topology::SERVICES;
use setpoint_testkit::free_port;
use tempfile::TempDir;

/// A `setpoint` program in a directory whose services are shell scripts.
struct Fixture {
    root: TempDir,
    ports: [u16; 2],
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self {
            root: tempfile::tempdir().unwrap(),
            ports: [(); 2].map(|()| free_port()),
        };
        fs::create_dir_all(fixture.bin()).unwrap();
        fs::copy(
            env!("CARGO_BIN_EXE_setpoint"),
            fixture.bin().join("setpoint"),
        )
        .unwrap();
        for service in SERVICES {
            fixture.script(service, "exit 0");
        }
        fixture.script("etcd", "exec tail -f /dev/null");
        fixture
    }

    fn bin(&self) -> PathBuf {
        self.root.path().join("bin")
    }

    fn script(&self, name: &str, body: &str) {
        let path = self.bin().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs `setpoint` with the scripts first in `PATH`.
    fn run(&self, arguments: &[&str]) -> Output {
        let system = std::env::var("PATH").unwrap();
        let path = format!("{}:{system}", self.bin().display());
        self.command(arguments).env("PATH", path).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.bin().join("setpoint"));
        command.args(arguments).current_dir(self.root.path());
        command
    }

    fn up(&self) -> Output {
        let [port, etcd] = self.ports.map(|port| port.to_string());
        let proxy = ["--proxy", "none", "--pod-network", "host"];
        self.run(&[&["up", "--port", &port, "--etcd-port", &etcd][..], &proxy].concat())
    }

    fn is_stopped(&self) -> bool {
        let run = self.root.path().join(".setpoint/run");
        fs::read_dir(run).unwrap().count() == 0 && !has_marked_process(self.root.path())
    }
}

/// Whether a process runs that was started for the cluster in `root`.
fn has_marked_process(root: &Path) -> bool {
    let mark = format!("SETPOINT_MEMBER={}", root.display());
    let carries = |process: fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(mark.as_bytes()))
    };
    fs::read_dir("/proc").unwrap().flatten().any(carries)
}

/// Returns the error message; asserts that the exit code is 1, and that it is one line, followed by what to try.
fn error_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("\n  try: "), "{text}");
    text
}

#[test]
fn a_port_that_is_taken_is_named() {
    for taken in 0..2 {
        let fixture = Fixture::new();
        let port = fixture.ports[taken];
        let _held = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let line = error_line(&fixture.up());
        assert!(
            line.starts_with(&format!("setpoint: port {port} for ")),
            "{line}"
        );
        assert!(fixture.is_stopped());
    }
}

#[test]
fn without_etcd_it_says_how_to_get_it() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.bin().join("etcd")).unwrap();
    let line = error_line(
        &fixture
            .command(&["up"])
            .env("PATH", fixture.bin())
            .output()
            .unwrap(),
    );
    assert!(line.contains("etcd is not installed"), "{line}");
    assert!(line.contains("apt-get install etcd-server"), "{line}");
}

#[test]
fn without_a_service_it_says_who_builds_it() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.bin().join("scheduler")).unwrap();
    let line = error_line(&fixture.up());
    assert!(
        line.contains("bin/scheduler is missing; ./deploy/up builds it"),
        "{line}"
    );
}

#[test]
fn a_process_that_dies_at_once_takes_the_others_with_it() {
    let fixture = Fixture::new();
    fixture.script("etcd", "echo no space left >&2; exit 7");
    let line = error_line(&fixture.up());
    let expected = "setpoint: etcd-0 ended during its start (exit status: 7); its log: .setpoint/log/etcd-0.log\n  try: tail .setpoint/log/etcd-0.log\n";
    assert_eq!(line, expected);
    let log = fs::read_to_string(fixture.root.path().join(".setpoint/log/etcd-0.log")).unwrap();
    assert_eq!(log, "no space left\n");
    assert!(fixture.is_stopped());
}

/// Checks E11: `setpoint status | head`.
#[test]
fn a_reader_that_leaves_before_the_end_of_the_output_ends_the_command() {
    let fixture = Fixture::new();
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let output = fixture.command(&["status"]).stdout(closed).output();
    let output = output.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        output.status.code(),
        Some(141),
        "as if SIGPIPE had ended it"
    );
}

#[test]
fn down_where_nothing_runs_is_no_error() {
    let fixture = Fixture::new();
    for _ in 0..2 {
        let output = fixture.run(&["down"]);
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "Setpoint is not running.\n"
        );
    }
    let status = fixture.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));
    assert!(
        String::from_utf8(status.stdout)
            .unwrap()
            .contains("stopped")
    );
}
