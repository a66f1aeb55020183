//! Pods that have to wait for a node.

use std::fmt::Write as _;

use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::web::text;

const PODS: usize = 200;

/// Checks F3 and C6: nodes that become schedulable while the scheduler still writes its refusals are not missed.
#[test]
fn pods_that_are_being_refused_when_nodes_become_schedulable_get_these_nodes() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 3,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    for node in names(&kubectl) {
        kubectl.ok(&format!("cordon {node}"));
    }
    assert!(cluster.process("scheduler-0").stop(), "in good order");
    let created = kubectl.with("create", &manifests());
    assert!(created.success, "{}", created.stderr);
    cluster.process("scheduler-0").restart();

    eventually("the first Pod is refused", || {
        let events = kubectl.ok("get events -o name --field-selector reason=FailedScheduling");
        (!events.is_empty()).then_some(()).ok_or(events)
    });
    for node in &names(&kubectl)[..2] {
        kubectl.ok(&format!("uncordon {node}"));
    }
    eventually("every Pod has a node", || {
        let waiting = kubectl.ok("get pods -o name --field-selector spec.nodeName=");
        let left = waiting.lines().count();
        (left == 0).then_some(()).ok_or(format!("{left} wait"))
    });
}

fn names(kubectl: &Kubectl) -> Vec<String> {
    let nodes = kubectl.json("get nodes");
    let items = nodes["items"].as_array().into_iter().flatten();
    items
        .map(|node| text(node, "/metadata/name").to_owned())
        .collect()
}

fn manifests() -> String {
    let mut manifests = String::new();
    for n in 0..PODS {
        let _ = write!(
            manifests,
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: waiting-{n}, namespace: default}}\n\
             spec: {{containers: [{{name: main, image: busybox}}]}}\n"
        );
    }
    manifests
}
