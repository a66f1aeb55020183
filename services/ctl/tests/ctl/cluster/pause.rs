//! A cluster that is paused or stopped goes on as it was.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_ctl::launcher::{StateDir, frozen};

use crate::cluster::harness::{Cluster, eventually, stdout_of};

const PODS: &str = "/api/v1/namespaces/default/pods";
/// A Pod of a node that runs processes.
const POD: &str = r#"{
    "metadata": {"name": "sleeper"},
    "spec": {
        "nodeSelector": {"setpoint.dev/runtime": "process"},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "sleep", "image": "sleep", "command": ["sleep", "3600"]}]
    }
}"#;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Returns the CPU time that each of the processes has used, in clock ticks.
fn ticks(pids: &[i32]) -> Vec<u64> {
    let of = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        let words: Vec<_> = rest.split(' ').collect();
        words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap()
    };
    pids.iter().map(of).collect()
}

fn error_of(cluster: &Cluster, arguments: &[&str]) -> String {
    let output = cluster.run(arguments);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_paused_cluster_uses_no_cpu_and_continues_with_the_same_processes() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    assert_eq!(cluster.ask("POST", PODS, POD), 201);
    let state_dir = cluster.state_dir();
    // A signal without effect counts them.
    let of_pods = |state_dir: &StateDir| frozen::signal_pods(state_dir, Signal::SIGCONT);
    eventually("the Pod runs", || (of_pods(&state_dir) == 1).then_some(()));
    let before = cluster.pids();

    let text = stdout_of(&cluster.run(&["pause"]));
    assert!(
        text.starts_with("Setpoint is paused: 14 processes, and 1 of Pods,"),
        "{text}"
    );
    let pids: Vec<_> = before.values().copied().collect();
    let used = ticks(&pids);
    // Longer than the leases of leaders.
    sleep(Duration::from_secs(3));
    assert_eq!(ticks(&pids), used);
    let status = cluster.run(&["status"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(
        (status.status.code(), text.matches(" paused\n").count()),
        (Some(1), 14)
    );
    let error = error_of(&cluster, &["leaders"]);
    let expected = "setpoint: the cluster in .setpoint is paused\n  try: setpoint resume\n";
    assert_eq!(error, expected);

    let text = stdout_of(&cluster.run(&["resume"]));
    assert!(text.starts_with("Setpoint is ready after "), "{text}");
    assert_eq!(cluster.pids(), before);
    assert_eq!(
        cluster.ask("POST", CONFIG_MAPS, r#"{"metadata":{"name":"a"}}"#),
        201
    );
    cluster.leader("scheduler");
    assert_eq!(cluster.ask("GET", &format!("{PODS}/sleeper"), ""), 200);
    assert_eq!(of_pods(&state_dir), 1);

    stdout_of(&cluster.run(&["pause"]));
    let text = stdout_of(&cluster.run(&["down"]));
    assert!(
        text.contains("Setpoint is down: 14 processes stopped"),
        "{text}"
    );
    assert!(!text.contains("killed"), "{text}");
    assert_eq!(of_pods(&state_dir), 0);
}

#[test]
fn a_stopped_cluster_starts_again_with_its_objects_size_and_ports() {
    let cluster = Cluster::new();
    let error = error_of(&cluster, &["start"]);
    assert!(
        error.starts_with("setpoint: no cluster was stopped in .setpoint"),
        "{error}"
    );
    assert!(error.contains("\n  try: ./deploy/up"), "{error}");
    for command in ["pause", "resume"] {
        let error = error_of(&cluster, &[command]);
        assert!(error.contains("\n  try: setpoint start"), "{error}");
    }
    cluster.up(&["--replicas", "1", "--gateways", "2"]);
    let before = cluster.pids();
    assert_eq!(
        cluster.ask("POST", CONFIG_MAPS, r#"{"metadata":{"name":"kept"}}"#),
        201
    );

    let text = stdout_of(&cluster.run(&["stop"]));
    let expected = format!("Setpoint is stopped: {} processes.", before.len());
    assert!(
        text.contains(&expected) && !text.contains("killed"),
        "{text}"
    );
    assert_eq!(cluster.pids().len(), 0);
    let text = stdout_of(&cluster.run(&["start"]));
    assert!(text.contains("Setpoint is ready after "), "{text}");
    let after = cluster.pids();
    assert!(after.keys().eq(before.keys()), "{after:?}");
    assert_eq!(cluster.ask("GET", &format!("{CONFIG_MAPS}/kept"), ""), 200);
    let text = stdout_of(&cluster.run(&["start"]));
    assert!(text.starts_with("Setpoint is running already"), "{text}");
    assert_eq!(cluster.pids(), after);
}
