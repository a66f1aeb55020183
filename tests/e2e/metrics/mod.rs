//! Metrics are valid and documented, and those that dashboards query exist.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

mod access;
mod convergence;
mod dashboards;
mod exposition;
mod prometheus;
mod scene;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use setpoint_tests::eventually;

use exposition::Family;
use scene::Scene;

/// Documented metrics that exist only after a failure or with a setting.
const RARE: &[&str] = &[
    "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds",
    "apiserver_authentication_config_controller_automatic_reloads_total",
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
    "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
    "apiserver_authentication_jwt_authenticator_latency_seconds",
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
    "apiserver_authorization_config_controller_automatic_reloads_total",
    "apiserver_authorization_match_condition_evaluation_errors_total",
    "apiserver_authorization_match_condition_evaluation_seconds",
    "apiserver_authorization_match_condition_exclusions_total",
    "apiserver_authorization_webhook_duration_seconds",
    "apiserver_authorization_webhook_evaluations_fail_open_total",
    "apiserver_authorization_webhook_evaluations_total",
    "apiserver_flowcontrol_rejected_requests_total",
    "apiserver_storage_decode_errors_total",
    "apiserver_storage_transformation_operations_total",
    "apiserver_terminated_watchers_total",
    "pod_security_errors_total",
    "pod_security_exemptions_total",
    "setpoint_connections_cut_total",
    "setpoint_events_dropped_total",
    "setpoint_panics_total",
    "setpoint_refused_service_requests_total",
    "setpoint_watchers_stalled_total",
];

/// Returns the names in the table of `deploy/dashboards/README.md`.
fn documented() -> BTreeSet<String> {
    let text = dashboards::file("README.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    names.map(str::to_owned).collect()
}

/// Returns metrics that no process exports although they are documented or used by a dashboard.
fn missing(metrics: &BTreeMap<String, Family>, documented: &BTreeSet<String>) -> Vec<String> {
    let is_there = |name: &&String| metrics.contains_key(*name) || RARE.contains(&name.as_str());
    let documented = documented.iter().filter(|name| !is_there(name));
    let mut missing: Vec<_> = documented
        .map(|name| format!("{name}, which is documented"))
        .collect();
    for expression in dashboards::expressions() {
        let names = dashboards::names(&expression).into_iter();
        let silent = names.filter(|name| {
            let family = exposition::family_of(metrics, name);
            family.is_none_or(|family| metrics[&family].samples == 0)
        });
        missing.extend(silent.map(|name| format!("{name}, used by: {expression}")));
    }
    missing
}

#[test]
fn every_metric_has_a_help_text_and_is_documented() {
    let scene = Scene::start();
    let documented = documented();
    let metrics = eventually("no metric is missing", || {
        let metrics = scene.metrics();
        let missing = missing(&metrics, &documented);
        missing
            .is_empty()
            .then_some(metrics)
            .ok_or_else(|| missing.join("\n"))
    });
    for (name, family) in &metrics {
        assert!(family.help.len() > 10, "{name} has no HELP: {family:?}");
        assert!(!family.r#type.is_empty(), "{name} has no TYPE");
        assert!(documented.contains(name), "{name} is not documented");
    }
    for address in scene.targets().into_values().flatten() {
        lint(&Scene::text(&address));
    }
}

/// Runs promtool's check, if it is installed.
fn lint(text: &str) {
    let mut command = Command::new("promtool");
    let command = command.args(["check", "metrics"]).stdin(Stdio::piped());
    let Ok(mut promtool) = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        eprintln!("SKIPPED: promtool is not installed, so it cannot verify the metrics");
        return;
    };
    let mut stdin = promtool.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
    drop(stdin);
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Upstream's own names violate some of the rules.
    let ours = said
        .lines()
        .filter(|line| line.starts_with("setpoint_") || line.contains("error"));
    let ours: Vec<_> = ours.collect();
    assert!(ours.is_empty(), "{ours:?}");
}
