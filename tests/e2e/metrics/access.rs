//! The pages of all processes, for clients without credentials and for those who monitor.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_testkit::Prometheus;
use setpoint_tests::{Address, eventually, http};
use setpoint_tls::authority::{Authority, Leaf, Usage, write_certificates};
use setpoint_tls::{Credentials, Files};
use tempfile::TempDir;

use super::scene::Scene;

/// The pages of the process itself, and of agents.
const PAGES: [&str; 8] = [
    "/metrics",
    "/debug/flags/log",
    "/stats/summary",
    "/metrics/resource",
    "/api",
    "/apis",
    "/openapi/v2",
    "/logs",
];

/// Checks V20: each port, each page. A page that a process does not have is not found: gRPC says so by a header.
#[test]
fn nothing_but_health_is_served_without_credentials() {
    let scene = Scene::start();
    let monitor = Monitor::new(&scene);
    for (service, addresses) in scene.targets() {
        let address = &addresses[0];
        for page in PAGES {
            let answer = http::get_without_credentials(address, page).unwrap();
            let has_it = match page {
                "/metrics" | "/debug/flags/log" => true,
                "/stats/summary" | "/metrics/resource" => service == "node-agent",
                _ => false,
            };
            let refused = [401, 403].contains(&answer.status.as_u16());
            let unknown = answer.status == 404 || answer.body.is_empty();
            let is_absent = !has_it && service != "gateway" && unknown;
            assert!(refused || is_absent, "{service}{page}: {}", answer.status);
        }
        let metrics = http::get_without_credentials(address, "/metrics").unwrap();
        let message = r#"User \"system:anonymous\" cannot get path \"/metrics\""#;
        assert!(
            metrics.body.contains(message),
            "{service}: {}",
            metrics.body
        );
        for page in ["/livez", "/readyz", "/healthz"] {
            let answer = http::get_without_credentials(address, page).unwrap();
            assert_eq!(answer.status, 200, "{service}{page}");
        }
        // Those who monitor read metrics and change nothing.
        let address = Address::secure(address.to_string(), monitor.credentials());
        let metrics = eventually("roles are in effect", || {
            let answer = http::get(&address, "/metrics").map_err(|error| error.to_string())?;
            (answer.status == 200)
                .then_some(answer.body)
                .ok_or_else(|| answer.status.to_string())
        });
        assert!(metrics.contains("process_cpu_seconds_total"), "{service}");
        let filter = http::get(&address, "/debug/flags/log").unwrap();
        assert_eq!(filter.status, 403, "{service}");
    }
    let address = Address::secure(scene.gateways()[0].to_string(), monitor.credentials());
    let secrets = http::get(&address, "/api/v1/secrets").unwrap();
    assert_eq!(secrets.status, 403);
    every_replica_is_scraped(&scene, &monitor);
}

/// Scrapes as the Prometheus of compose.yaml.
fn every_replica_is_scraped(scene: &Scene, monitor: &Monitor) {
    if !Prometheus::is_installed() {
        eprintln!("SKIPPED: prometheus is not installed (Debian: apt-get install prometheus)");
        return;
    }
    let targets = scene.targets().into_iter().map(|(service, addresses)| {
        let places = addresses.iter().map(|address| address.place().to_owned());
        (service, places.collect::<Vec<_>>())
    });
    let targets: BTreeMap<_, _> = targets.collect();
    let expected = targets.values().flatten().count().to_string();
    let prometheus = Prometheus::start_over_tls(&targets, monitor.folder.path());
    let address = Address::plain(&prometheus.address());
    eventually("all replicas are scraped", || {
        let up = super::prometheus::query(&address, "sum(up)")?;
        (up.first() == Some(&expected))
            .then_some(())
            .ok_or(format!("{up:?} of {expected}"))
    });
}

/// The certificate of a user who monitors.
struct Monitor {
    folder: TempDir,
}

impl Monitor {
    fn new(scene: &Scene) -> Self {
        let pki = scene.administrator().parent().unwrap().to_owned();
        let ca = Authority::load(&pki.join("ca.crt"), &pki.join("ca.key")).unwrap();
        let leaf = Leaf {
            name: "monitor".to_owned(),
            groups: vec!["system:monitoring".to_owned()],
            hosts: Vec::new(),
            usage: Usage::Client,
            lifetime: Duration::from_secs(3_600),
        };
        let folder = tempfile::tempdir().unwrap();
        let files = Files::in_directory(folder.path());
        write_certificates(&files.ca_file, &[ca.certificate()]).unwrap();
        ca.issue(&leaf).unwrap().write(&files).unwrap();
        Self { folder }
    }

    fn credentials(&self) -> Credentials {
        Credentials::load(&Files::in_directory(self.folder.path())).unwrap()
    }
}
