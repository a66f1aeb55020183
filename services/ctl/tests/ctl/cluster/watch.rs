//! `setpoint up --watch`, and the command as a plug-in of kubectl.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::symlink;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::harness::{Cluster, eventually, stdout_of};

/// `setpoint up --watch`, which has begun to watch.
struct Watch(Child, BufReader<ChildStdout>);

impl Watch {
    fn start(cluster: &Cluster) -> Self {
        let mut command = cluster.command(&["up", "--watch"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("Watching its processes") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0);
        }
        Self(child, output)
    }

    /// Waits until it has ended, and returns what it has printed.
    fn end(mut self) -> String {
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        text
    }
}

#[test]
fn a_process_that_ends_is_started_again_until_the_watch_ends() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast"]);
    let before = cluster.pids();
    let watch = Watch::start(&cluster);
    cluster.kill("scheduler-0");
    eventually("it was started again", || {
        let pid = cluster.pids().get("scheduler-0").copied();
        pid.filter(|pid| *pid != before["scheduler-0"])
    });
    kill(Pid::from_raw(watch.0.id().cast_signed()), Signal::SIGINT).unwrap();
    let text = watch.end();
    let ended = "scheduler-0 has ended; its log: .setpoint/log/scheduler-0.log\n";
    assert!(text.contains(ended), "{text}");
    assert_eq!(cluster.pids().len(), before.len());

    let watch = Watch::start(&cluster);
    cluster.run(&["stop"]);
    let text = watch.end();
    assert!(text.ends_with("The cluster was stopped.\n"), "{text}");
    assert_eq!(cluster.pids().len(), 0);
}

#[test]
fn kubectl_finds_it_as_a_plug_in_for_its_own_cluster() {
    let cluster = Cluster::new();
    cluster.up(&["--replicas", "1"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let plugin = elsewhere.path().join("kubectl-setpoint");
    symlink(env!("CARGO_BIN_EXE_setpoint"), plugin).unwrap();
    let own = cluster.root.path().join(".setpoint/kubeconfig");
    let kubeconfig = elsewhere.path().join("config");
    fs::copy(own, &kubeconfig).unwrap();
    let path = env::var("PATH").unwrap();
    let kubectl = |arguments: &[&str]| {
        let mut command = Command::new("kubectl");
        command.args(arguments).current_dir(elsewhere.path());
        command.env("PATH", format!("{}:{path}", elsewhere.path().display()));
        command.env("KUBECONFIG", &kubeconfig).output().unwrap()
    };
    let text = stdout_of(&kubectl(&["setpoint", "why", "namespace/default"]));
    assert!(text.starts_with("Name:        default\n"), "{text}");
    let text = stdout_of(&kubectl(&["setpoint", "why", "--help"]));
    assert!(text.contains("Usage: kubectl setpoint why"), "{text}");
    let absent = kubectl(&["setpoint", "history", "configmap/absent", "--state", "here"]);
    let error = String::from_utf8(absent.stderr).unwrap();
    let expected = "setpoint: no cluster runs in here\n  try: ./deploy/up";
    assert!(error.starts_with(expected), "{error}");
}
