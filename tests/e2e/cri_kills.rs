//! A node on containerd of which a part is killed at any step of the starts of Pods.
//!
//! All tests have one round; more, at other moments, are run by hand:
//! `SETPOINT_KILL_ROUNDS=50 cargo nextest run -p setpoint-tests cri_kills`.

use std::env;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use setpoint_testkit::processes_with;
use setpoint_tests::{Cluster, Kubectl, eventually};

use crate::containerd::{CriNode, IMAGE, until_ready};
use crate::web::{is_ready, text};

const PODS: usize = 20;
/// Kills while these Pods start, each at most this long after the one before.
const KILLS: usize = 4;
const LONGEST_PAUSE: Duration = Duration::from_millis(1_000);
/// The number of rounds.
const ROUNDS: &str = "SETPOINT_KILL_ROUNDS";

/// Returns the number of seconds that each container sleeps, a word that the processes of no other test have.
fn seconds() -> String {
    (1_000_000 + std::process::id()).to_string()
}

fn deployment() -> String {
    let seconds = seconds();
    format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{name: many}}
spec:
  replicas: {PODS}
  selector: {{matchLabels: {{app: many}}}}
  template:
    metadata: {{labels: {{app: many}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {{name: main, image: {IMAGE}, command: [sleep, '{seconds}']}}
"
    )
}

#[test]
fn twenty_pods_start_once_each_while_containerd_is_killed_and_leave_nothing() {
    let Some(mut node) = CriNode::start() else {
        return;
    };
    let mut cluster = node.cluster();
    let kill = |node: &mut CriNode, _: &mut Cluster| {
        node.containerd.kill();
        node.containerd.restart();
    };
    rounds(&mut node, &mut cluster, kill);
}

#[test]
fn twenty_pods_start_once_each_while_their_agent_is_killed_and_leave_nothing() {
    let Some(mut node) = CriNode::start() else {
        return;
    };
    let mut cluster = node.cluster();
    let kill = |_: &mut CriNode, cluster: &mut Cluster| {
        cluster.process("node-agent-0").restart();
    };
    rounds(&mut node, &mut cluster, kill);
}

/// Starts the Pods, kills meanwhile, and once more while they end.
///
/// containerd 1.6 forgets a shim whose start is cut off, by its own death or by that of the client, and no call of the
/// CRI names that. It runs nothing. There may be as many as there were starts at that moment, at most one for each Pod.
fn rounds(
    node: &mut CriNode,
    cluster: &mut Cluster,
    mut kill: impl FnMut(&mut CriNode, &mut Cluster),
) {
    let kubectl = cluster.kubectl();
    let mut after_a_pause = |node: &mut CriNode, cluster: &mut Cluster| {
        let pause = LONGEST_PAUSE.mul_f64(rand::random());
        // Shown of a failed test.
        eprintln!("kills after {pause:?}");
        sleep(pause);
        kill(node, cluster);
    };
    let count = env::var(ROUNDS).map_or(1, |count| count.parse().expect("a number"));
    for round in 0..count {
        eprintln!("round {round}");
        let applied = kubectl.with("apply", &deployment());
        assert!(applied.success, "{}", applied.stderr);
        for _ in 0..KILLS {
            after_a_pause(node, cluster);
        }
        all_run_once(node, &kubectl);
        kubectl.ok("delete deployment many");
        after_a_pause(node, cluster);
        node.containerd.wait_until_it_answers();
        eventually("nothing is left of the Pods", || {
            let (all, running) = (node.all(), processes_with(&seconds()));
            let shims = node.containerd.shims();
            let nothing = all.is_empty() && running == 0 && shims <= PODS * (round + 1);
            nothing
                .then_some(())
                .ok_or(format!("{all:?} {running} {shims}"))
        });
    }
    node.containerd.kill_shims();
}

/// Waits until all Pods run, and checks that there are no other sandboxes and containers, and that none was restarted.
fn all_run_once(node: &CriNode, kubectl: &Kubectl) {
    node.containerd.wait_until_it_answers();
    let pods = eventually("all Pods are Ready", || {
        let list = kubectl.json("get pods -l app=many");
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let settled = pods.len() == PODS && pods.iter().all(is_ready);
        settled.then_some(pods).ok_or_else(|| why(kubectl))
    });
    for pod in pods {
        let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
        assert_eq!(restarts, 0, "{pod}");
    }
    node.until_sandboxes(PODS);
    eventually("there is a container in each sandbox", || {
        let (all, running) = (node.all().len(), processes_with(&seconds()));
        let once = (all, running) == (2 * PODS, PODS);
        once.then_some(()).ok_or(format!("{all} {running}"))
    });
}

fn why(kubectl: &Kubectl) -> String {
    let pods = kubectl.run("get pods -o wide").stdout;
    let events = kubectl.run("get events --field-selector=type=Warning");
    pods + &events.stdout
}

#[test]
fn pods_go_on_without_the_socket_and_a_dead_sandbox_is_made_anew_with_its_containers() {
    let Some(node) = CriNode::start() else {
        return;
    };
    let mut cluster = node.cluster();
    let kubectl = cluster.kubectl();
    let script = "echo${IFS}runs;exec${IFS}sleep${IFS}1000000";
    let pod = format!("run one --image={IMAGE} -- sh -c {script}");
    kubectl.ok(&pod);
    kubectl.ok("wait --for=condition=Ready pod/one --timeout=60s");
    let before = node.all();
    the_socket_is_gone_for_a_while(&node, &mut cluster);
    assert_eq!(node.all(), before, "what runs is taken over");
    let dead = node.until_sandboxes(1).remove(0);
    let address = address(&kubectl);
    let killed = node
        .containerd
        .ctr(&["tasks", "kill", "--signal", "SIGKILL", &dead]);
    assert!(killed.status.success(), "{killed:?}");
    eventually("the Pod runs again, with another sandbox", || {
        let pod = kubectl.json("get pod one");
        let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
        let again = is_ready(&pod) && restarts == 1;
        again.then_some(()).ok_or(pod["status"].to_string())
    });
    // The dead one stays for the log of its container.
    let found = node.until_sandboxes(2);
    assert!(found.contains(&dead), "{found:?}");
    assert_eq!(kubectl.ok("logs one --previous"), "runs\n");
    assert_ne!(self::address(&kubectl), address);
    kubectl.ok("delete pod one --now");
    node.until_sandboxes(0);
}

fn address(kubectl: &Kubectl) -> String {
    let pod = kubectl.json("get pod one");
    text(&pod, "/status/podIP").to_owned()
}

/// An agent that starts meanwhile waits for the socket.
fn the_socket_is_gone_for_a_while(node: &CriNode, cluster: &mut Cluster) {
    let (socket, away) = (
        node.containerd.socket(),
        node.containerd.folder().join("away"),
    );
    fs::rename(&socket, &away).expect("it is on one file system");
    cluster.process("node-agent-0").kill();
    node.start_agent(cluster);
    eventually("the agent says what it waits for", || {
        let log = cluster.log("node-agent-0");
        let waits = "waiting for the container runtime";
        let says = log.contains(waits) && log.contains("no container runtime listens at");
        says.then_some(()).ok_or(log)
    });
    fs::rename(&away, &socket).expect("it is on one file system");
    eventually("the agent has connected to the runtime", || {
        let log = cluster.log("node-agent-0");
        let says = log.contains("connected to the container runtime");
        says.then_some(()).ok_or(log)
    });
    until_ready(&cluster.kubectl());
}
