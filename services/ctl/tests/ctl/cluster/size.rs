//! A cluster grows and shrinks while it runs.

use crate::cluster::harness::{Cluster, stdout_of};

fn ready(cluster: &Cluster) -> usize {
    stdout_of(&cluster.run(&["status"]))
        .matches(" ready\n")
        .count()
}

#[test]
fn a_cluster_grows_and_shrinks_while_it_runs() {
    let cluster = Cluster::new();
    cluster.up(&["--replicas", "1"]);
    assert_eq!(ready(&cluster), 10);
    let before = cluster.pids();

    let text = cluster.up(&["--replicas", "3"]);
    assert!(text.contains("Starting the 8 of 18"), "{text}");
    assert!(!text.contains("Restarting"), "{text}");
    assert_eq!(ready(&cluster), 18);

    let text = cluster.up(&["--gateways", "2"]);
    assert!(text.contains("Starting the 1 of 19"), "{text}");
    assert!(text.contains("Restarting 15 processes"), "{text}");
    assert_eq!(ready(&cluster), 19);
    assert_eq!(cluster.pids()["gateway-0"], before["gateway-0"]);
    let text = cluster.up(&[]);
    assert!(
        text.contains("nothing was changed"),
        "sizes are kept: {text}"
    );

    let text = cluster.up(&["--relays"]);
    assert!(text.contains("Starting the 15 of 34"), "{text}");
    assert!(text.contains("Restarting 15 processes"), "{text}");
    assert_eq!(ready(&cluster), 34);
    let text = cluster.up(&["--gateways", "1", "--replicas", "1"]);
    assert!(
        text.contains("Restarting 14 processes"),
        "both sides: {text}"
    );
    assert!(text.contains("Stopping 17 surplus processes"), "{text}");
    assert_eq!(ready(&cluster), 17);
    let text = cluster.up(&["--relays=false", "--gateways", "2", "--replicas", "3"]);
    assert!(text.contains("Stopping 7 surplus processes"), "{text}");
    assert_eq!(ready(&cluster), 19);

    let text = cluster.up(&["--replicas", "1", "--gateways", "1"]);
    assert!(text.contains("Stopping 9 surplus processes"), "{text}");
    assert!(!text.contains("killed"), "{text}");
    assert_eq!(ready(&cluster), 10);
    let text = stdout_of(&cluster.run(&["down"]));
    assert!(text.contains("10 processes stopped"), "{text}");
}
