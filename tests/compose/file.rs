//! Rules for compose.yaml that are checked without an engine.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::project::{binaries, root};

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there")
}

#[test]
fn nothing_runs_with_more_rights_than_it_needs_and_nothing_has_a_fixed_name() {
    let text = text("compose.yaml");
    for word in ["privileged", "cap_add", "container_name", "network_mode"] {
        assert!(
            !text.contains(&format!("{word}:")),
            "{word} in compose.yaml"
        );
    }
}

/// Returns the networks of each service, in the order of compose.yaml; the default is `control`.
fn networks() -> Vec<(String, String)> {
    let text = text("compose.yaml");
    let (_, services) = text
        .split_once("\nservices:\n")
        .expect("there are services");
    let (services, _) = services
        .split_once("\nnetworks:\n")
        .expect("there are networks");
    let mut found: Vec<(String, String)> = Vec::new();
    for line in services.lines() {
        let name = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with([' ', '#']));
        if let Some(name) = name.and_then(|name| name.strip_suffix(':')) {
            found.push((name.to_owned(), "[control]".to_owned()));
        } else if let (Some(networks), Some(last)) =
            (line.trim().strip_prefix("networks: "), found.last_mut())
        {
            networks.clone_into(&mut last.1);
        }
    }
    found
}

/// Checks F21.
#[test]
fn pods_reach_nothing_of_the_cluster_and_only_gateways_reach_etcd() {
    let networks = networks();
    let named = |network: &str| {
        let in_it = networks.iter().filter(|(_, all)| all.contains(network));
        in_it.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(named("store"), ["etcd", "gateway"]);
    assert_eq!(named("pods"), ["pods"], "it serves no port");
    assert!(named("control").contains(&"node-agent"), "{networks:?}");
    assert!(
        !text("compose.yaml").contains("FALLBACK"),
        "no processes in `control`"
    );
}

#[test]
fn every_published_port_is_of_the_loopback_alone() {
    let text = text("compose.yaml");
    let ports = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ports: "));
    let ports: Vec<_> = ports.collect();
    assert!(!ports.is_empty(), "kubectl has no way in");
    for port in ports {
        assert!(port.starts_with("[\"127.0.0.1:"), "{port}");
    }
}

#[test]
fn the_dockerfile_has_a_target_for_every_image_that_compose_builds() {
    let (compose, docker) = (text("compose.yaml"), text("deploy/Dockerfile"));
    let wanted = compose
        .lines()
        .filter_map(|line| line.split("target: ").nth(1));
    let wanted: BTreeSet<_> = wanted
        .map(|rest| rest.trim_end_matches([' ', '}']))
        .collect();
    assert!(wanted.contains("gateway"), "{wanted:?}");
    for target in wanted {
        let stage = format!("FROM scratch AS {target}\n");
        assert!(docker.contains(&stage), "no stage {target}");
    }
}

#[test]
fn the_dockerfile_needs_no_image_but_the_one_it_names() {
    let docker = text("deploy/Dockerfile");
    assert!(
        !docker.contains("# syntax"),
        "a syntax line is an image that is pulled"
    );
    let bases = docker.lines().filter_map(|line| line.strip_prefix("FROM "));
    let bases: BTreeSet<_> = bases.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(bases, BTreeSet::from(["${RUST_IMAGE}", "scratch"]));
}

#[test]
fn every_service_takes_the_settings_file_that_is_shipped_for_it() {
    let folder = root().join("deploy/config");
    let files = fs::read_dir(folder).expect("it is there");
    let files: Vec<_> = files
        .map(|file| file.expect("it is readable").path())
        .collect();
    assert!(!files.is_empty());
    for file in files {
        let service = file.file_stem().expect("it has a name");
        let output = Command::new(binaries().join(service))
            .args(["health", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .env("SETPOINT__TLS__PLAINTEXT", "true")
            .output()
            .expect("services are built with their tests");
        // A health check on port 0 fails with 1; wrong settings would exit with 64.
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{}: {text}", file.display());
    }
}
