//! A cluster starts, is repaired, and stops.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cluster::harness::{Cluster, stdout_of};

#[test]
fn a_cluster_comes_up_goes_down_and_keeps_its_objects() {
    let cluster = Cluster::new();
    let text = cluster.up(&[]);
    assert!(text.contains("Setpoint is ready after "), "{text}");
    assert!(
        text.contains("kubectl apply -f deploy/manifests/web-frontend.yaml"),
        "{text}"
    );
    let kubeconfig = fs::read_to_string(cluster.root.path().join(".setpoint/kubeconfig")).unwrap();
    assert!(
        kubeconfig.contains(&format!("https://127.0.0.1:{}", cluster.ports[0])),
        "{kubeconfig}"
    );
    assert_eq!(
        stdout_of(&cluster.run(&["status"]))
            .matches(" ready\n")
            .count(),
        14
    );

    let before = cluster.pids();
    assert_eq!(before.len(), 14);
    let text = cluster.up(&[]);
    assert!(
        text.starts_with("Setpoint is running already; nothing was changed."),
        "{text}"
    );
    assert_eq!(cluster.pids(), before);

    let (collection, object) = (
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/kept",
    );
    assert_eq!(
        cluster.ask("POST", collection, r#"{"metadata":{"name":"kept"}}"#),
        201
    );
    let text = stdout_of(&cluster.run(&["down"]));
    assert!(
        text.contains("Setpoint is down: 14 processes stopped"),
        "{text}"
    );
    assert!(!text.contains("killed"), "{text}");
    assert!(before.values().all(|pid| !is_alive(*pid)));
    cluster.up(&[]);
    assert_eq!(cluster.ask("GET", object, ""), 200);
    cluster.up(&["--fresh"]);
    assert_eq!(cluster.ask("GET", object, ""), 404);
}

/// Whether a process runs. A zombie has an id but no environment, and counts as ended.
fn is_alive(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| !environment.is_empty())
}

#[test]
fn up_starts_missing_processes_and_keeps_the_others() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast"]);
    let before = cluster.pids();
    cluster.kill("scheduler-1");
    let status = cluster.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));

    let text = cluster.up(&["--profile", "fast"]);
    assert!(
        text.contains("Starting the 1 of 14 processes that do not run"),
        "{text}"
    );
    let mut after = cluster.pids();
    assert_ne!(
        after.remove("scheduler-1"),
        before.get("scheduler-1").copied()
    );
    assert!(after.iter().all(|(name, pid)| before[name] == *pid));
}

#[test]
fn every_key_of_the_settings_files_exists() {
    let config = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config"));
    let files: Vec<_> = fs::read_dir(config)
        .unwrap()
        .flatten()
        .map(|file| file.path())
        .collect();
    assert_eq!(files.len(), 15);
    for file in files {
        let service = file.file_stem().unwrap();
        let mut command =
            Command::new(Path::new(env!("CARGO_BIN_EXE_setpoint")).with_file_name(service));
        // The invalid flag keeps the service from starting; flags are checked after the file.
        let output = command
            .arg("--config")
            .arg(&file)
            .arg("--drain=soon")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("for key `drain`"), "{text}");
    }
}
