//! `setpoint chaos` kills, freezes and partitions leaders in containers.

use std::process::Command;

use setpoint_tests::eventually;

use crate::project::{Project, binaries};

const SERVICE: &str = "replicaset-controller";
/// The services that the load needs, without their dependencies; the node is simulated.
const UP: &str = "-f compose.yaml -f tests/compose/chaos.yaml --env-file tests/compose/chaos.env up -d --no-build front deployment-controller replicaset-controller scheduler controller-manager node-agent";
/// The Leases of those that the load waits for; the namespace-controller removes what the load has created.
const LEADERS: &str = "get lease -n setpoint-system deployment-controller replicaset-controller scheduler namespace-controller -o jsonpath={.items[*].spec.holderIdentity}";

/// Checks L4 and L5 in containers. One Compose version is enough, because chaos uses the engine directly.
#[test]
fn leaders_in_containers_are_replaced_at_no_cost() {
    let composes: [&[_]; 2] = [&["docker", "compose"], &["docker-compose"]];
    let Some(project) = composes.into_iter().find_map(Project::new) else {
        return;
    };
    project.compose(UP);
    let kubectl = project.kubectl();
    eventually(
        "Pods can be scheduled and each service has a leader",
        || {
            let nodes = kubectl
                .run("get nodes --no-headers --request-timeout=5s")
                .stdout;
            let leaders = kubectl.run(LEADERS).stdout.split_whitespace().count();
            let ready = nodes.lines().filter(|line| line.contains(" Ready"));
            let well = ready.count() == 1 && leaders == 4;
            well.then_some(()).ok_or(format!("{leaders} lead, {nodes}"))
        },
    );
    for fault in ["kill", "pause", "partition"] {
        chaos(&project, fault);
    }
}

/// Runs one round; asserts that the leader has changed, without late writes, extra Pods or lost writes.
fn chaos(project: &Project, fault: &str) {
    let result = Command::new(binaries().join("setpoint"))
        .args(["chaos", fault, "--compose", project.name()])
        .args([
            "--service",
            SERVICE,
            "--leader",
            "--rounds",
            "1",
            "--kubeconfig",
        ])
        .arg(project.kubeconfig())
        .output()
        .expect("it was built");
    let output = String::from_utf8_lossy(&result.stdout).into_owned()
        + &String::from_utf8_lossy(&result.stderr);
    println!("{output}");
    assert!(result.status.success(), "{output}");
    assert!(output.contains(", no leader for "), "{output}");
    let total = output.lines().find(|line| line.starts_with("total"));
    let total: Vec<_> = total.unwrap_or_default().split_whitespace().collect();
    assert_eq!(total.get(2..), Some(&["0", "0", "0"][..]), "{output}");
}
