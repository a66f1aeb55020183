//! `setpoint up` with a proxy, in a network namespace of the test.

use std::env;
use std::path::Path;
use std::process::Command;

use crate::cluster::harness::{Cluster, stdout_of};

/// Says that this process is in the namespace.
const INSIDE: &str = "SETPOINT_TEST_NAMESPACE";

/// Runs a test in a network namespace that has a loopback only. Returns whether this is the process in it.
fn enter(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        let status = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(status.unwrap().success());
        return true;
    }
    let trial = Command::new("unshare")
        .args(["--net", "nft", "list", "tables"])
        .output();
    if !trial.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: a cluster whose Services carry traffic was NOT tested: that takes root, ip and nft"
        );
        return false;
    }
    let program = env::current_exe().unwrap();
    let status = Command::new("unshare")
        .arg("--net")
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "yes")
        .status();
    assert!(
        status.unwrap().success(),
        "the test in the namespace failed"
    );
    false
}

fn tables() -> String {
    stdout_of(
        &Command::new("nft")
            .args(["list", "tables"])
            .output()
            .unwrap(),
    )
}

#[test]
fn one_cluster_of_a_machine_has_the_service_range_and_leaves_nothing() {
    if !enter("cluster::proxy::one_cluster_of_a_machine_has_the_service_range_and_leaves_nothing") {
        return;
    }
    let (cluster, other) = (Cluster::new(), Cluster::new());
    let text = cluster.up_with_proxy("auto");
    assert!(!text.contains("carry no traffic"), "{text}");
    assert!(cluster.pids().contains_key("proxy-0"));
    let first = tables();
    assert!(first.starts_with("table ip setpoint-"), "{first}");

    let text = other.up_with_proxy("auto");
    let owner = cluster.root.path().join(".setpoint");
    let why = format!(
        "Services will carry no traffic: the cluster of {} has the Service range",
        owner.display()
    );
    assert!(text.contains(&why), "{text}");
    assert!(!other.pids().contains_key("proxy-0"));
    stdout_of(&other.run(&["down"]));
    assert_eq!(tables(), first);

    // The processes of the first one are killed, as at a crash: the next start of another one removes its table.
    for name in cluster.pids().keys() {
        cluster.kill(name);
    }
    assert_eq!(tables(), first);
    let text = other.up_with_proxy("nftables");
    assert!(!text.contains("carry no traffic"), "{text}");
    let second = tables();
    assert!(second != first && second.lines().count() == 1, "{second}");
    stdout_of(&other.run(&["down"]));
    assert_eq!(tables(), "");
    let record = second.trim().trim_start_matches("table ip ");
    assert!(!Path::new("/run/setpoint").join(record).exists());
}
