//! ReplicaSets changed by other clients than their Deployment's controller.

use setpoint_tests::{Cluster, Size, eventually};

use crate::web::{apply, text, until_ready};

/// Checks F9: a set whose template was edited collides with the Deployment's own and is replaced.
#[test]
fn an_edited_replica_set_is_replaced_by_one_of_the_deployments_template() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    let set = kubectl.ok("get replicasets -n production -o name");
    kubectl.ok(&format!("set image {} *=evil:2 -n production", set.trim()));
    eventually("the collision is counted", || {
        let deployment = kubectl.json("get deployment web-frontend -n production");
        let status = deployment["status"].clone();
        (status["collisionCount"] == 1)
            .then_some(())
            .ok_or(status.to_string())
    });
    kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
    let pods = until_ready(&kubectl, 3);
    let evil = |pod| text(pod, "/spec/containers/0/image") == "evil:2";
    assert!(!pods.iter().any(evil), "Pods of the edited set are left");
}
