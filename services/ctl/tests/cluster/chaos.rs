//! Leaders are killed and frozen under load; nothing is doubled or lost.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::stage::{Cluster, eventually, said};

const SERVICE: [&str; 3] = ["--service", "replicaset-controller", "--leader"];
const NAMESPACE: &str = "/api/v1/namespaces/setpoint-chaos";

fn chaos(cluster: &Cluster, fault: &str) -> String {
    let more = ["--rounds", "2", "--seed", "7"];
    said(&cluster.run(&[&["chaos", fault][..], &SERVICE, &more].concat()))
}

/// The last line of the table, without its name.
fn total(text: &str) -> Vec<&str> {
    let line = text.lines().find(|line| line.starts_with("total"));
    line.unwrap().split_whitespace().skip(1).collect()
}

/// Checks L4 and L5: nothing that a former leader wrote late was committed, no Pod is doubled, no write is lost.
#[test]
fn killed_and_frozen_leaders_are_replaced_at_no_cost() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--gateways", "2"]);
    for fault in ["kill", "pause"] {
        let text = chaos(&cluster, fault);
        assert_eq!(text.matches(", nobody led for ").count(), 2, "{text}");
        assert_eq!(
            text.matches(" → replicaset-controller-").count(),
            2,
            "{text}"
        );
        assert_eq!(total(&text)[1..], ["0", "0", "0"], "{text}");
    }
    said(&cluster.run(&["status"]));
    assert_eq!(cluster.ask("GET", NAMESPACE, ""), 404);
}

#[test]
fn an_interrupted_round_leaves_nothing_broken_and_nothing_behind() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast"]);
    let forever = ["--pause", "10m"];
    let mut command = cluster.command(&[&["chaos", "pause"][..], &SERVICE, &forever].concat());
    let mut chaos = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let frozen = eventually("the leader is frozen", || {
        cluster.pids().values().copied().find(|pid| is_frozen(*pid))
    });
    kill(
        Pid::from_raw(chaos.id().try_into().unwrap()),
        Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(chaos.wait().unwrap().code(), Some(1));
    assert!(!is_frozen(frozen));
    assert_eq!(cluster.ask("GET", NAMESPACE, ""), 404);
}

#[test]
fn what_cannot_be_broken_is_refused() {
    let cluster = Cluster::new();
    let refused = |arguments: &[&str], why: &str| {
        let output = cluster.run(arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(why), "{text}");
    };
    let kill = [&["chaos", "kill"][..], &SERVICE].concat();
    refused(&kill, "no cluster runs in .setpoint");
    let elsewhere = ["--gateway", "http://192.0.2.1:6443"];
    refused(&[&kill[..], &elsewhere].concat(), "is not on this machine");
    cluster.up(&[]);
    refused(
        &["chaos", "partition", "--service", "scheduler", "--leader"],
        "needs a compose cluster",
    );
    refused(
        &["chaos", "kill", "--service", "nobody", "--random"],
        "no replica of nobody runs",
    );
}

/// Stopped by a signal.
fn is_frozen(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with('T')
}
