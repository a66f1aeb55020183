//! `setpoint chaos` kills, freezes and partitions leaders under load, without extra Pods or lost writes.

use std::fs;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::harness::{Cluster, eventually, stdout_of};

const SERVICE: [&str; 3] = ["--service", "replicaset-controller", "--leader"];
const NAMESPACE: &str = "/api/v1/namespaces/setpoint-chaos";
/// Maximum number of runs until a fault hits a write in progress. Under this load few runs miss.
const TRIES: usize = 5;

fn chaos(cluster: &Cluster, fault: &str) -> String {
    let more = ["--rounds", "2", "--seed", "7"];
    stdout_of(&cluster.run(&[&["chaos", fault][..], &SERVICE, &more].concat()))
}

/// Returns the cells of the last line of the table, without its name.
fn total(text: &str) -> Vec<&str> {
    let line = text.lines().find(|line| line.starts_with("total"));
    line.unwrap().split_whitespace().skip(1).collect()
}

/// Checks L4 and L5: no late write of a former leader is committed, no Pod is created twice, no write is lost.
#[test]
fn killed_and_frozen_leaders_are_replaced_at_no_cost() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--gateways", "2"]);
    for fault in ["kill", "pause"] {
        assert_free_of_cost(&chaos(&cluster, fault));
    }
    assert_sound(&cluster);
}

/// Checks L3 and L5: another replica leads during the partition, and late writes of the former leader have no effect.
#[test]
fn leaders_that_are_cut_off_are_replaced_and_stand_by_once_they_are_back() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--gateways", "2", "--relays"]);
    let (first, _) = cluster.leader("replicaset-controller");
    assert_free_of_cost(&chaos(&cluster, "partition"));
    let log = cluster
        .root
        .path()
        .join(format!(".setpoint/log/{first}.log"));
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("leadership lost"), "{log}");
    eventually("the former leader is a standby, as are all others", || {
        let table = stdout_of(&cluster.run(&["leaders"]));
        let mut lines = table.lines();
        let line = lines.find(|line| line.starts_with("replicaset-controller"))?;
        let both = ["-0", "-1"].iter().all(|one| line.contains(one));
        (both && !table.contains("none")).then_some(())
    });
    assert_sound(&cluster);
}

/// Checks L5: writes sent before a leader was frozen arrive under the next leader, and are refused.
#[test]
fn writes_that_arrive_late_are_refused_and_counted() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--relays"]);
    let mut fenced = (0..TRIES).map(|_| {
        let text = chaos(&cluster, "delay");
        assert_free_of_cost(&text);
        total(&text)[0].to_owned()
    });
    let hit = fenced.any(|fenced| fenced != "0");
    assert!(hit, "no fault hit a write in progress");
    assert_sound(&cluster);
}

/// Asserts that both rounds changed the leader, without late writes, extra Pods or lost writes.
fn assert_free_of_cost(text: &str) {
    assert_eq!(text.matches(", no leader for ").count(), 2, "{text}");
    let successors = text.matches(" → replicaset-controller-").count();
    assert_eq!(successors, 2, "{text}");
    assert_eq!(total(text)[1..], ["0", "0", "0"], "{text}");
}

/// Asserts that all processes are ready and the load is deleted.
fn assert_sound(cluster: &Cluster) {
    stdout_of(&cluster.run(&["status"]));
    assert_eq!(cluster.ask("GET", NAMESPACE, ""), 404);
}

#[test]
fn an_interrupted_round_leaves_nothing_broken_and_nothing_behind() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--relays"]);
    interrupt(&cluster, "pause", "replicaset-controller-");
    interrupt(&cluster, "partition", "relay-replicaset-controller-");
}

fn interrupt(cluster: &Cluster, fault: &str, whom: &str) {
    let forever = ["--pause", "10m"];
    let mut command = cluster.command(&[&["chaos", fault][..], &SERVICE, &forever].concat());
    let mut chaos = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (name, frozen) = eventually("one is frozen", || {
        let mut pids = cluster.pids().into_iter();
        pids.find(|(_, pid)| is_frozen(*pid))
    });
    assert!(name.starts_with(whom), "{name}");
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
fn unsupported_faults_are_refused() {
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
    let cut = |service| ["chaos", "partition", "--service", service, "--random"];
    refused(&cut("scheduler"), "`setpoint up --relays` adds them to");
    refused(
        &["chaos", "kill", "--service", "nobody", "--random"],
        "no replica of nobody runs",
    );
    cluster.up(&["--relays"]);
    refused(&cut("gateway"), "gateway has no relay");
}

/// Whether the process is stopped by a signal.
fn is_frozen(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default();
    state.trim_start().starts_with('T')
}
