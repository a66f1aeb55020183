//! Prometheus on a cluster: every replica is scraped, and every panel has data.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::Command;

use serde_json::Value;
use setpoint_testkit::Prometheus;
use setpoint_tests::{Address, SERVICES, eventually, http};

use super::dashboards;
use super::scene::Scene;

#[test]
fn prometheus_scrapes_every_replica_and_every_panel_has_data() {
    if !Prometheus::is_installed() {
        eprintln!("SKIPPED: prometheus is not installed (Debian: apt-get install prometheus)");
        return;
    }
    let scene = Scene::start();
    let targets = scene.targets();
    let replicas = targets.values().flatten().count();
    let places = |addresses: Vec<Address>| {
        let places = addresses.iter().map(|address| address.place().to_owned());
        places.collect::<Vec<_>>()
    };
    let targets = targets.into_iter();
    let targets = targets.map(|(service, addresses)| (service, places(addresses)));
    let prometheus = Prometheus::start_over_tls(&targets.collect(), &scene.administrator());
    let address = Address::plain(&prometheus.address());
    eventually("all replicas are scraped", || {
        let up = query(&address, "sum(up)")?;
        let up = up.first().map(String::as_str).unwrap_or_default();
        (up == replicas.to_string())
            .then_some(())
            .ok_or(format!("{up} of {replicas}"))
    });
    // A rate needs changes between two scrapes.
    scene.scale();
    scene.send_fenced_write();
    scene.overwrite_each_other();
    for expression in dashboards::expressions() {
        let asked = expression.replace("$__rate_interval", "1m");
        eventually(&format!("there is data for {expression}"), || {
            let values = query(&address, &asked)?;
            (!values.is_empty())
                .then_some(())
                .ok_or_else(|| "none".to_owned())
        });
    }
}

/// The shipped settings find replicas by DNS, which a local cluster does not have.
#[test]
fn the_settings_for_prometheus_are_valid_and_name_every_service() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/prometheus.yml");
    let text = std::fs::read_to_string(path).unwrap();
    for service in SERVICES {
        assert!(text.contains(&format!("names: [{service}]")), "{service}");
    }
    match Command::new("promtool")
        // The credentials are in a volume.
        .args(["check", "config", "--syntax-only", path])
        .output()
    {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => eprintln!("SKIPPED: promtool is not installed, so it cannot verify the settings"),
    }
}

/// Returns the values of an instant query.
pub fn query(address: &Address, expression: &str) -> Result<Vec<String>, String> {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    let escaped: String = expression.bytes().map(escape).collect();
    let reply = http::get(address, &format!("/api/v1/query?query={escaped}"));
    let reply = reply.map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&reply.body).map_err(|_| reply.body.clone())?;
    let result = answer["data"]["result"].as_array().ok_or(reply.body)?;
    let values = result.iter().filter_map(|one| one["value"][1].as_str());
    Ok(values.map(str::to_owned).collect())
}
