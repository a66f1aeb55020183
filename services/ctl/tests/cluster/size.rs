//! A cluster grows and shrinks while it runs.

use crate::harness::{Cluster, stdout_of};

fn ready(cluster: &Cluster) -> usize {
    stdout_of(&cluster.run(&["status"]))
        .matches(" ready\n")
        .count()
}

#[test]
fn a_cluster_grows_and_shrinks_while_it_runs() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast", "--replicas", "1"]);
    assert_eq!(ready(&cluster), 8);
    let before = cluster.pids();

    let text = cluster.up(&["--replicas", "3"]);
    assert!(text.contains("Starting the 6 of 14"), "{text}");
    assert!(!text.contains("Restarting"), "{text}");
    assert_eq!(ready(&cluster), 14);

    let text = cluster.up(&["--gateways", "2"]);
    assert!(text.contains("Starting the 1 of 15"), "{text}");
    assert!(text.contains("Restarting 12 processes"), "{text}");
    assert_eq!(ready(&cluster), 15);
    assert_eq!(cluster.pids()["gateway-0"], before["gateway-0"]);
    let text = cluster.up(&[]);
    assert!(
        text.contains("nothing was changed"),
        "sizes are kept: {text}"
    );

    let text = cluster.up(&["--relays"]);
    assert!(text.contains("Starting the 12 of 27"), "{text}");
    assert!(text.contains("Restarting 12 processes"), "{text}");
    assert_eq!(ready(&cluster), 27);
    let text = cluster.up(&["--gateways", "1", "--replicas", "1"]);
    assert!(
        text.contains("Restarting 12 processes"),
        "both sides: {text}"
    );
    assert!(text.contains("Stopping 13 surplus processes"), "{text}");
    assert_eq!(ready(&cluster), 14);
    let text = cluster.up(&["--relays=false", "--gateways", "2", "--replicas", "3"]);
    assert!(text.contains("Stopping 6 surplus processes"), "{text}");
    assert_eq!(ready(&cluster), 15);

    let text = cluster.up(&["--replicas", "1", "--gateways", "1"]);
    assert!(text.contains("Stopping 7 surplus processes"), "{text}");
    assert!(!text.contains("killed"), "{text}");
    assert_eq!(ready(&cluster), 8);
    let text = stdout_of(&cluster.run(&["down"]));
    assert!(text.contains("8 processes stopped"), "{text}");
}
