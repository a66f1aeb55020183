//! Parts of a control plane that do not join, and clusters of several machines that do not start.

use setpoint_testkit::enter_namespace;
use tempfile::TempDir;

use crate::cluster::harness::{eventually, refusal, stdout_of};
use crate::cluster::machine::Machine;

/// Each reason is told in its own words, and leaves nothing behind.
pub fn refusals(root: &TempDir, one: &Machine<'_>) {
    let other = Machine::with_state(root, "m3", "refused");
    overlaps(one, &other);
    let command = one.token("gateway", &["--ttl", "5m"]);
    let why = other.refused(&command.replace("join gateway", "join controller"));
    let expected = "was made for something else than a replica of the controllers";
    assert!(why.contains(expected), "{why}");

    let (_, hash) = command.split_once("--ca-cert-hash sha256:").unwrap();
    let hash = &hash[..64];
    let why = other.refused(&command.replace(hash, &"0".repeat(64)));
    assert!(why.contains("the CA of this cluster has the hash"), "{why}");

    let (_, key) = command.split_once("--certificate-key ").unwrap();
    let why = other.refused(&command.replace(key, &"0".repeat(64)));
    assert!(why.contains("--certificate-key does not decrypt"), "{why}");

    let why = other.refused(&format!("{command} --address 10.77.0.9"));
    let expected = "this machine does not have the address 10.77.0.9";
    assert!(why.contains(expected), "{why}");

    // None of these has used the token up. Deleted, it hands over nothing more.
    let list = stdout_of(&one.run(&["token", "list"]));
    let id = command.split_once("--token ").unwrap().1[..6].to_owned();
    let row = list.lines().find(|line| line.starts_with(&id));
    assert!(row.is_some_and(|row| row.contains(" gateway ")), "{list}");
    stdout_of(&one.run(&["token", "delete", &id]));
    let why = other.refused(&command);
    assert!(why.contains("has expired, was used or deleted"), "{why}");
    eventually("what it would have handed over is gone", || {
        let found = one.kubectl("get secrets,roles,rolebindings -n kube-system -o name");
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        (found.status.success() && !text.contains("setpoint-join-")).then_some(())
    });

    let expired = one.token("controller", &["--ttl", "1s"]);
    eventually("it is removed", || {
        let list = stdout_of(&one.run(&["token", "list", "-o", "json"]));
        (list.trim() == "[]").then_some(())
    });
    let why = other.refused(&expired);
    assert!(why.contains("has expired, was used or deleted"), "{why}");

    let used = one.token("controller", &[]);
    stdout_of(&other.follow(&used));
    stdout_of(&other.run(&["down"]));
    let again = Machine::with_state(root, "m3", "again");
    let why = again.refused(&used);
    assert!(why.contains("has expired, was used or deleted"), "{why}");
}

/// A machine in a network that a range of the cluster overlaps is refused, whatever joins.
fn overlaps(one: &Machine<'_>, other: &Machine<'_>) {
    let ip = |change: &str, address: &str| {
        let ran = other.inside("ip", &["address", change, address, "dev", "eth0"]);
        stdout_of(&ran);
    };
    let commands = [
        one.token("controller", &["--ttl", "5m"]),
        one.token("agent", &["--node", "n9", "--ttl", "5m"]),
    ];
    for (range, address, network) in [
        ("Pods, 10.244.0.0/16", "10.244.9.1/24", "10.244.9.0/24"),
        ("Services, 10.96.0.0/16", "10.96.9.1/20", "10.96.0.0/20"),
    ] {
        ip("add", address);
        for command in &commands {
            let why = other.refused(command);
            let expected = format!(
                "the range of {range}, overlaps {network}, the network of eth0 on this machine"
            );
            assert!(why.contains(&expected), "{why}");
        }
        ip("del", address);
    }
    for command in &commands {
        let id = &command.split_once("--token ").unwrap().1[..6];
        stdout_of(&one.run(&["token", "delete", id]));
    }
}

/// It is found before anything starts, and another start may have another network.
#[test]
fn a_cluster_does_not_start_where_all_ranges_overlap_the_network_of_the_machine() {
    let test = "cluster::refusals::a_cluster_does_not_start_where_all_ranges_overlap_the_network_of_the_machine";
    let machine = [
        "netns add m1",
        "-n m1 link set lo up",
        "-n m1 link add eth0 type veth peer name other",
        "-n m1 addr add 10.0.0.1/8 dev eth0",
        "-n m1 link set eth0 up",
    ];
    if !enter_namespace(test, "a machine in a large network", &machine) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let one = Machine::new(&root, "m1");
    for _ in 0..2 {
        let why = refusal(&one.run(&["up", "--machine", "10.0.0.1"]));
        let expected = "overlaps 10.0.0.0/8, the network of eth0 on this machine";
        assert!(
            why.contains(expected) && why.contains("the range of Pods"),
            "{why}"
        );
        assert!(one.running().is_empty());
        assert!(!one.state.join("network.json").exists());
    }
}
