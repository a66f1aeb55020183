//! Leaders in containers are killed, frozen and cut off, as a user would do it.

use std::process::Command;

use setpoint_tests::eventually;

use crate::project::{Project, binaries};

const SERVICE: &str = "replicaset-controller";
/// What the load needs, beside what these depend on.
const UP: &str = "--env-file deploy/fast.env up -d --no-build front deployment-controller replicaset-controller scheduler node-agent";

/// Checks L4 and L5 in containers. Either Compose will do: chaos itself asks the engine.
#[test]
fn leaders_in_containers_are_replaced_at_no_cost() {
    let composes: [&[_]; 2] = [&["docker", "compose"], &["docker-compose"]];
    let Some(project) = composes.into_iter().find_map(Project::new) else {
        return;
    };
    project.compose(UP);
    let kubectl = project.kubectl();
    eventually("Pods can be scheduled and somebody leads", || {
        let nodes = kubectl
            .run("get nodes --no-headers --request-timeout=5s")
            .stdout;
        let leader = "get lease -n setpoint-system -o jsonpath={.items[*].spec.holderIdentity}";
        let leaders = kubectl.run(leader).stdout.split_whitespace().count();
        let ready = nodes.lines().filter(|line| line.contains(" Ready"));
        let well = ready.count() == 3 && leaders == 3;
        well.then_some(()).ok_or(format!("{leaders} lead, {nodes}"))
    });
    for fault in ["kill", "pause", "partition"] {
        chaos(&project, fault);
    }
}

/// One round: another leads afterwards, and nothing was late, doubled or lost.
fn chaos(project: &Project, fault: &str) {
    let output = Command::new(binaries().join("setpoint"))
        .args(["chaos", fault, "--compose", project.name()])
        .args(["--service", SERVICE, "--leader", "--rounds", "1"])
        .output()
        .expect("it was built");
    let (said, why) = (output.stdout, output.stderr);
    let said = String::from_utf8_lossy(&said).into_owned() + &String::from_utf8_lossy(&why);
    println!("{said}");
    assert!(output.status.success(), "{said}");
    assert!(said.contains(", nobody led for "), "{said}");
    let total = said.lines().find(|line| line.starts_with("total"));
    let total: Vec<_> = total.unwrap_or_default().split_whitespace().collect();
    assert_eq!(total.get(2..), Some(&["0", "0", "0"][..]), "{said}");
}
