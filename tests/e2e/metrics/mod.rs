//! Metrics: valid, documented, and there where a dashboard asks for them.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod convergence;
mod dashboards;
mod exposition;
mod prometheus;
mod scene;

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use scene::Scene;

/// Documented, but only there once something has gone wrong.
const RARE: &[&str] = &[
    "apiserver_terminated_watchers_total",
    "setpoint_connections_cut_total",
    "setpoint_events_dropped_total",
    "setpoint_watchers_stalled_total",
];

/// The names in the table of `deploy/dashboards/README.md`.
fn documented() -> BTreeSet<String> {
    let text = dashboards::file("README.md");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split('`').next());
    names.map(str::to_owned).collect()
}

#[test]
fn every_metric_says_what_it_means_and_is_documented() {
    let scene = Scene::play();
    let metrics = scene.metrics();
    let documented = documented();
    for (name, family) in &metrics {
        assert!(family.help.len() > 10, "{name} has no HELP: {family:?}");
        assert!(!family.r#type.is_empty(), "{name} has no TYPE");
        assert!(documented.contains(name), "{name} is in no table");
    }
    for name in &documented {
        let there = metrics.contains_key(name) || RARE.contains(&name.as_str());
        assert!(there, "{name} is documented and nobody tells it");
    }
    for expression in dashboards::expressions() {
        for name in dashboards::names(&expression) {
            let family = exposition::family_of(&metrics, &name);
            let samples = family.map(|family| metrics[&family].samples);
            assert!(
                samples.is_some_and(|samples| samples > 0),
                "no {name}, as asked for by: {expression}"
            );
        }
    }
    for address in scene.targets().into_values().flatten() {
        lint(&Scene::text(&address));
    }
}

/// Prometheus' own judgement, where it is installed.
fn lint(text: &str) {
    let mut command = Command::new("promtool");
    let command = command.args(["check", "metrics"]).stdin(Stdio::piped());
    let Ok(mut promtool) = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
    else {
        eprintln!("SKIPPED: promtool is not installed, so it cannot judge the metrics");
        return;
    };
    let mut stdin = promtool.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
    drop(stdin);
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    // Upstream's own names break some of its wishes.
    let ours = said
        .lines()
        .filter(|line| line.starts_with("setpoint_") || line.contains("error"));
    let ours: Vec<_> = ours.collect();
    assert!(ours.is_empty(), "{ours:?}");
}
