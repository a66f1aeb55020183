//! `setpoint leaders` shows the current leaders and their changes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::harness::{Cluster, eventually, stdout_of};

/// The number of controllers of a cluster, the scheduler included.
const LEADERS: usize = 28;

fn interrupt(child: &Child) {
    let pid = child.id().try_into().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
}

#[test]
fn a_new_leader_is_printed_when_it_takes_over() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast"]);
    let table = eventually("each service has a leader and a standby", || {
        let table = stdout_of(&cluster.run(&["leaders"]));
        let whole = table.lines().count() == LEADERS + 1 && !table.contains("none");
        whole.then_some(table)
    });
    assert!(table.starts_with("SERVICE "), "{table}");

    let (leader, term) = cluster.leader("scheduler");
    let mut watch = cluster.command(&["leaders", "--watch"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let first = lines.find(|line| line.as_ref().unwrap().contains("scheduler: "));
    assert!(first.unwrap().unwrap().contains(&leader));
    cluster.kill(&leader);
    let taken = format!("scheduler: {leader} → scheduler-");
    let line = lines.find(|line| line.as_ref().unwrap().contains(&taken));
    let line = line.unwrap().unwrap();
    assert!(
        line.contains(", after ") && line.contains(&format!("; term {},", term + 1)),
        "{line}"
    );
    interrupt(&watch);
    assert!(watch.wait().unwrap().success(), "Ctrl-C ends it cleanly");
}

#[test]
fn without_a_cluster_it_says_how_to_reach_one() {
    let cluster = Cluster::new();
    let output = cluster.run(&["leaders"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("setpoint: no cluster runs in .setpoint"),
        "{text}"
    );
}
