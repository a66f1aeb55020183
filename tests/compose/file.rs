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
    for word in ["privileged", "container_name"] {
        assert!(
            !text.contains(&format!("{word}:")),
            "{word} in compose.yaml"
        );
    }
    let lines = lines_of_services(&text);
    let of = |key: &str| {
        let with = lines.iter().filter(|(_, line)| line.starts_with(key));
        let plain = with.map(|(service, line)| (*service, line.split(" #").next().unwrap_or(line)));
        plain.collect::<Vec<_>>()
    };
    let added = [
        ("certs", "cap_add: [CHOWN, DAC_OVERRIDE]"),
        ("proxy", "cap_add: [NET_ADMIN]"),
    ];
    assert_eq!(of("cap_add:"), added);
    // Its rights are those in a network namespace with Pods and gateways alone.
    assert_eq!(
        of("network_mode:"),
        [("proxy", "network_mode: service:services")]
    );
}

/// Returns each line of a service, with the name of the service.
fn lines_of_services(text: &str) -> Vec<(&str, &str)> {
    let services = text
        .split_once("\nservices:\n")
        .and_then(|(_, rest)| rest.split_once("\nnetworks:\n"));
    let (services, _) = services.expect("there are services and networks");
    let mut service = "";
    let mut lines = Vec::new();
    for line in services.lines() {
        let name = line
            .strip_prefix("  ")
            .filter(|rest| !rest.starts_with([' ', '#']));
        match name.and_then(|name| name.strip_suffix(':')) {
            Some(name) => service = name,
            None => lines.push((service, line.trim())),
        }
    }
    lines
}

/// Checks V20, and that a service has the keys of no other.
#[test]
fn each_service_has_credentials_of_its_own_and_nothing_of_ours_speaks_clear_text() {
    let text = text("compose.yaml");
    for word in [
        "PLAINTEXT",
        "http://gateway",
        "http://etcd",
        "http://0.0.0.0",
    ] {
        assert!(!text.contains(word), "{word}");
    }
    let mut with_credentials = BTreeSet::new();
    for (service, line) in lines_of_services(&text)
        .into_iter()
        .filter(|(service, _)| *service != "certs")
    {
        assert!(!line.contains("pki:"), "{service} sees the keys of the CAs");
        for volume in line
            .split([' ', '"', '['])
            .filter(|word| word.contains("-tls:"))
        {
            let own = format!("{service}-tls:/run/setpoint/tls");
            assert!(volume.starts_with(&own), "{service} has {volume}");
            let is_read_only = volume.trim_end_matches([',', ']']).ends_with(":ro");
            assert_eq!(
                is_read_only,
                service != "node-agent",
                "agents ask there: {volume}"
            );
            with_credentials.insert(service);
        }
    }
    let built = lines_of_services(&text)
        .into_iter()
        .filter(|(_, line)| line.starts_with("image: setpoint/"));
    for (service, _) in built.filter(|(service, _)| *service != "certs") {
        assert!(with_credentials.contains(service), "{service}");
    }
    assert!(with_credentials.is_superset(&BTreeSet::from([
        "etcd",
        "front",
        "node-agent",
        "prometheus"
    ])));
}

#[test]
fn no_kubeconfig_is_shipped() {
    let listed = Command::new("git")
        .arg("ls-files")
        .current_dir(root())
        .output();
    let listed = listed.expect("git is installed").stdout;
    let listed = String::from_utf8_lossy(&listed);
    assert_eq!(
        listed.lines().find(|file| file.ends_with("kubeconfig")),
        None
    );
}

/// Returns the networks of each service, in the order of compose.yaml; the default is `control`.
fn networks() -> Vec<(String, String)> {
    let text = text("compose.yaml");
    let mut found: Vec<(String, String)> = Vec::new();
    for (service, line) in lines_of_services(&text) {
        if found.last().is_none_or(|(last, _)| last != service) {
            found.push((service.to_owned(), "[control]".to_owned()));
        }
        let networks = line.strip_prefix("networks: ");
        let networks = networks.or_else(|| line.strip_prefix("network_mode: "));
        if let (Some(networks), Some(last)) = (networks, found.last_mut()) {
            networks.clone_into(&mut last.1);
        }
    }
    found
}

/// Checks F21.
#[test]
fn pods_reach_gateways_and_the_dns_alone_and_only_gateways_reach_etcd() {
    let networks = networks();
    let named = |network: &str| {
        let in_it = networks.iter().filter(|(_, all)| all.contains(network));
        in_it.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(named("store"), ["etcd", "gateway"]);
    assert_eq!(
        named("pods"),
        ["gateway", "dns", "services", "pods"],
        "the last two serve no port, but the proxy is with `services`"
    );
    let with_services = networks.iter().filter(|(_, all)| all.contains("service:"));
    assert_eq!(with_services.count(), 1, "the proxy");
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
