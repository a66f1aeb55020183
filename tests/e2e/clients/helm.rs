//! helm installs, upgrades and rolls back a small chart.

use std::process::Command;

use setpoint_tests::{Cluster, Size};

use super::{client, succeed};

#[test]
fn helm_installs_upgrades_and_rolls_back_a_chart() {
    let Some(helm) = client("helm") else {
        return;
    };
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let chart = folder.path().join("web");
    let run = |arguments: &str| {
        let mut command = Command::new(&helm);
        let homes = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];
        command.envs(homes.map(|home| (home, folder.path())));
        command.args(arguments.split_whitespace()).arg("--");
        succeed(command.current_dir(folder.path()), cluster.directory())
    };
    run("create web");
    assert!(chart.is_dir());
    let installed = run("install web ./web --wait --timeout 60s");
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let replicas = || kubectl.ok("get deployment web -o jsonpath={.status.readyReplicas}");
    assert_eq!(replicas(), "1");
    run("upgrade web ./web --set replicaCount=2 --wait --timeout 60s");
    assert_eq!(replicas(), "2");
    run("rollback web 1 --wait --timeout 60s");
    assert_eq!(
        kubectl.ok("get deployment web -o jsonpath={.spec.replicas}"),
        "1"
    );
    let history = run("history web");
    assert!(history.contains("Rollback to 1"), "{history}");
    run("uninstall web --wait");
    assert_eq!(
        kubectl.ok("get deployments,services -l app.kubernetes.io/name=web -o name"),
        ""
    );
}
