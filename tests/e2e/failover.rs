//! Leaders are killed during a rollout: their successors complete it without extra Pods.

use setpoint_tests::{Cluster, ELECTED, Size, eventually};

use crate::web::{apply, text, until_ready};

/// Checks R3 and L4 with real processes: the standby finishes the rollout, and no Pod is created twice.
#[test]
fn a_standby_completes_the_rollout_of_a_killed_leader() {
    let size = Size {
        replicas: 2,
        process_nodes: 0,
        simulated_nodes: 3,
        ..Size::default()
    };
    let mut cluster = Cluster::start(size);
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    for (round, service) in ELECTED.iter().enumerate() {
        let leader = cluster.leader(service);
        let image = format!("nginx:1.{}", 30 + round);
        kubectl.ok(&format!(
            "set image deployment/web-frontend -n production nginx={image}"
        ));
        cluster.process(&leader).kill();
        kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
        let pods = until_ready(&kubectl, 3);
        assert!(
            pods.iter()
                .all(|pod| text(pod, "/spec/containers/0/image") == image)
        );
        // If the rollout was complete before the leader ended, the lease is taken over only now.
        eventually(&format!("the standby leads {service}"), || {
            let now = cluster.leader(service);
            (now != leader).then_some(()).ok_or(now)
        });
        cluster.process(&leader).restart();
    }
    eventually("one ReplicaSet has all Pods", || {
        let sets = kubectl.json("get rs -n production");
        let sets = sets["items"].as_array().cloned().unwrap_or_default();
        let alive: Vec<_> = sets
            .iter()
            .filter(|set| set["status"]["replicas"] != 0)
            .collect();
        (alive.len() == 1 && alive[0]["status"]["replicas"] == 3)
            .then_some(())
            .ok_or(format!("{alive:?}"))
    });
}

#[test]
fn a_stopped_leader_releases_its_lease() {
    let size = Size {
        replicas: 2,
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    };
    let mut cluster = Cluster::start(size);
    let leader = cluster.leader("replicaset-controller");
    assert!(cluster.process(&leader).stop(), "it exits without an error");
    eventually("the standby leads", || {
        let now = cluster.leader("replicaset-controller");
        (now != leader).then_some(()).ok_or(now)
    });
}
