//! A node that is short of memory evicts Pods, as it does those that hold too much of its disk; one that shuts down
//! ends them; one with a full disk loses none.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_testkit::SmallDisk;
use setpoint_tests::{Cluster, Kubectl, Size, eventually, fast_election};

use crate::web::text;
use crate::workloads::{CONTROLLERS, MANAGER, create};

const ONE_NODE: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 1,
    simulated_nodes: 0,
};

/// Starts a cluster with one node, whose agent has these settings.
fn cluster(environment: &[(&str, &str)]) -> Cluster {
    let mut cluster = Cluster::with_environments(ONE_NODE, environment);
    let controllers = CONTROLLERS.map(str::to_owned);
    let flags = [fast_election(), controllers.into()].concat();
    cluster.service(MANAGER, 0, &flags);
    cluster
}

/// Returns a manifest of a Pod that is bound to the node and runs a script.
pub fn pod(name: &str, more: &str, script: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: node-0
  terminationGracePeriodSeconds: 60
  containers:
  - name: main
    image: none
    command: [sh, -c, '{script}']
    {more}
"
    )
}

pub const SLEEP: &str = "exec sleep 1000";
/// Makes a Pod burstable.
const MODEST: &str = "resources: {requests: {memory: 1Mi}}";
/// Makes a Pod burstable and critical to its node.
const CRITICAL: &str = "resources: {requests: {memory: 1Mi}}
  priorityClassName: system-node-critical";

fn object(kubectl: &Kubectl, name: &str) -> Value {
    kubectl.json(&format!("get {name}"))
}

/// Waits until the status of a Pod satisfies `wanted`, and returns it.
pub fn until(kubectl: &Kubectl, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("the status of Pod {name}"), || {
        let status = object(kubectl, &format!("pod {name}"))["status"].clone();
        let holds = wanted(&status);
        holds.then(|| status.clone()).ok_or(status.to_string())
    })
}

pub fn has_phase(phase: &'static str) -> impl Fn(&Value) -> bool {
    move |status| text(status, "/phase") == phase
}

/// Returns status, reason and message of a condition of an object.
fn condition(object: &Value, kind: &str) -> [String; 3] {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten();
    let found = found.find(|one| one["type"] == kind);
    ["/status", "/reason", "/message"]
        .map(|field| found.map_or("", |found| text(found, field)).to_owned())
}

fn events(kubectl: &Kubectl, reason: &str) -> String {
    kubectl.ok(&format!(
        "get events -A --field-selector=reason={reason} -o jsonpath={{.items[*].message}}"
    ))
}

#[test]
fn a_node_short_of_memory_is_tainted_and_refuses_and_evicts_pods() {
    // No machine has as much, so that the threshold is met at once. A soft one lets Pods in before it evicts them.
    let cluster = cluster(&[
        ("SETPOINT__EVICTION__SOFT", "memory.available<1Pi"),
        (
            "SETPOINT__EVICTION__SOFT_GRACE_PERIOD",
            "memory.available=1s",
        ),
    ]);
    let kubectl = cluster.kubectl();
    eventually("the node is tainted", || {
        let node = object(&kubectl, "node node-0");
        let expected = [
            "True",
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        ];
        assert_eq!(condition(&node, "MemoryPressure"), expected);
        assert_eq!(condition(&node, "DiskPressure")[0], "False");
        let taints = node["spec"]["taints"].to_string();
        let tainted = taints.contains("node.kubernetes.io/memory-pressure");
        tainted.then_some(()).ok_or(taints)
    });

    create(&kubectl, &pod("best-effort", "", SLEEP));
    let refused = until(&kubectl, "best-effort", has_phase("Failed"));
    assert_eq!(text(&refused, "/reason"), "Evicted");
    let message = "Pod was rejected: The node had condition: [MemoryPressure]. ";
    assert_eq!(text(&refused, "/message"), message);

    create(&kubectl, &pod("critical", CRITICAL, SLEEP));
    until(&kubectl, "critical", has_phase("Running"));
    create(&kubectl, &pod("modest", MODEST, SLEEP));
    until(&kubectl, "modest", has_phase("Failed"));
    let evicted = object(&kubectl, "pod modest");
    assert_eq!(text(&evicted, "/status/reason"), "Evicted");
    let message = text(&evicted, "/status/message");
    let start = "The node was low on resource: memory. Threshold quantity: 1Pi, available: ";
    assert!(message.starts_with(start), "{message}");
    let target = condition(&evicted, "DisruptionTarget");
    assert_eq!(target, ["True", "TerminationByKubelet", message]);
    assert_eq!(
        text(&object(&kubectl, "pod critical"), "/status/phase"),
        "Running"
    );
    eventually("the Events are written", || {
        let (of_pod, of_node) = (
            events(&kubectl, "Evicted"),
            events(&kubectl, "EvictionThresholdMet"),
        );
        let written = of_pod.contains(start) && of_node.contains("Attempting to reclaim memory");
        written.then_some(()).ok_or(of_pod + &of_node)
    });
}

/// Checks K13.
#[test]
fn a_pod_that_exceeds_its_ephemeral_storage_is_evicted_and_others_are_not() {
    let cluster = cluster(&[]);
    let kubectl = cluster.kubectl();
    let limit = "resources: {limits: {ephemeral-storage: 512Ki}}";
    let write =
        |kilobytes| format!("dd if=/dev/zero bs=1k count={kilobytes} 2>/dev/null; exec sleep 1000");
    create(&kubectl, &pod("modest", limit, &write(100)));
    create(&kubectl, &pod("unlimited", "", &write(2000)));
    create(&kubectl, &pod("greedy", limit, &write(2000)));
    until(&kubectl, "greedy", has_phase("Failed"));
    let evicted = object(&kubectl, "pod greedy");
    assert_eq!(text(&evicted, "/status/reason"), "Evicted");
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 512Ki. ";
    assert_eq!(text(&evicted, "/status/message"), message);
    assert_eq!(condition(&evicted, "DisruptionTarget")[0], "");
    eventually("the Event is written", || {
        let written = events(&kubectl, "Evicted");
        (written.trim() == message.trim())
            .then_some(())
            .ok_or(written)
    });
    for name in ["modest", "unlimited"] {
        let pod = object(&kubectl, &format!("pod {name}"));
        assert_eq!(text(&pod, "/status/phase"), "Running");
    }
}

#[test]
fn a_node_that_shuts_down_ends_its_pods_and_the_critical_ones_last() {
    let mut cluster = cluster(&[
        ("SETPOINT__SHUTDOWN_GRACE_PERIOD", "2m"),
        ("SETPOINT__SHUTDOWN_GRACE_PERIOD_CRITICAL_PODS", "1m"),
    ]);
    let kubectl = cluster.kubectl();
    let release = cluster.directory().join("release");
    let path = release.display();
    // It ends when the test lets it.
    let waits = format!(
        "trap \"while [ ! -e {path} ]; do sleep 0.1; done; exit 0\" TERM; while :; do sleep 0.1; done"
    );
    create(&kubectl, &pod("ordinary", MODEST, &waits));
    create(&kubectl, &pod("critical", CRITICAL, SLEEP));
    for name in ["ordinary", "critical"] {
        until(&kubectl, name, has_phase("Running"));
    }
    cluster.process("node-agent-0").signal(Signal::SIGTERM);
    eventually("the node is not ready", || {
        let ready = condition(&object(&kubectl, "node node-0"), "Ready");
        let expected = ["False", "KubeletNotReady", "node is shutting down"];
        (ready == expected).then_some(()).ok_or(ready.concat())
    });
    create(&kubectl, &pod("late", MODEST, SLEEP));
    let late = until(&kubectl, "late", has_phase("Failed"));
    assert_eq!(text(&late, "/reason"), "NodeShutdown");
    let message = "Pod was rejected: Pod was rejected as the node is shutting down.";
    assert_eq!(text(&late, "/message"), message);
    for name in ["ordinary", "critical"] {
        let status = object(&kubectl, &format!("pod {name}"))["status"].clone();
        assert_eq!(
            text(&status, "/phase"),
            "Running",
            "{name} waits for the ordinary Pod"
        );
    }

    std::fs::write(&release, "").expect("it is writable");
    let agent = cluster.process("node-agent-0");
    eventually("the agent ends", || match agent.is_running() {
        true => Err("it runs".to_owned()),
        false => Ok(()),
    });
    for name in ["ordinary", "critical"] {
        let ended = object(&kubectl, &format!("pod {name}"));
        let words = ["/phase", "/reason", "/message"].map(|field| text(&ended["status"], field));
        let message = "Pod was terminated in response to imminent node shutdown.";
        assert_eq!(words, ["Failed", "Terminated", message], "{name}");
        assert_eq!(
            condition(&ended, "DisruptionTarget"),
            ["True", "TerminationByKubelet", message]
        );
    }
}

/// Checks N2: without a grace period of the node, its Pods outlive the agent.
#[test]
fn pods_go_on_when_the_agent_of_a_node_without_a_grace_period_is_stopped() {
    let mut cluster = cluster(&[]);
    let kubectl = cluster.kubectl();
    create(&kubectl, &pod("web", "", SLEEP));
    until(&kubectl, "web", has_phase("Running"));
    let agent = cluster.process("node-agent-0");
    assert_eq!(agent.stop_within(Duration::from_secs(60)), Some(true));
    agent.restart();
    until(&kubectl, "web", |status| {
        let ready = condition(&serde_json::json!({ "status": status }), "Ready");
        ready[0] == "True" && status["containerStatuses"][0]["restartCount"] == 0
    });
}

/// A container that runs keeps its result, even if the agent is killed meanwhile. One that cannot be created says why,
/// and is created once there is space.
#[test]
fn no_pod_is_lost_while_the_disk_of_its_node_is_full() {
    let Some(disk) = SmallDisk::mount() else {
        return;
    };
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        ..ONE_NODE
    });
    let state = disk.path().join("agent").display().to_string();
    let flags = ["--node-name", "node-0", "--state-dir", &state];
    cluster.service("node-agent", 0, &flags.map(str::to_owned));
    let kubectl = cluster.kubectl();
    let release = cluster.directory().join("release");
    let once = format!(
        "until [ -e {} ]; do sleep 0.1; done; exit 7",
        release.display()
    );
    let never = "env: []\n  restartPolicy: Never";
    create(&kubectl, &pod("early", never, &once));
    until(&kubectl, "early", has_phase("Running"));

    disk.fill();
    create(&kubectl, &pod("late", "", SLEEP));
    eventually("the Event is written", || {
        let written = events(&kubectl, "FailedCreatePodSandBox");
        let says_why = written.starts_with("Failed to create pod sandbox: ")
            && written.contains("No space left on device");
        says_why.then_some(()).ok_or(written)
    });
    let agent = cluster.process("node-agent-0");
    agent.kill();
    std::fs::write(&release, "").expect("it is writable");
    agent.restart();
    let ended = until(&kubectl, "early", has_phase("Failed"));
    let exit_code = &ended["containerStatuses"][0]["state"]["terminated"]["exitCode"];
    assert_eq!(*exit_code, 7, "{ended}");

    disk.free();
    let late = until(&kubectl, "late", has_phase("Running"));
    assert_eq!(late["containerStatuses"][0]["restartCount"], 0);
}
