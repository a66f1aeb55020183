//! Warnings of an application are its problems, and not what its nodes do not do.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use setpoint_testkit::enter_namespace;
use setpoint_tests::{Kubectl, eventually};

use super::local::{Local, NETWORK, WHAT};
use super::pods::{NOBODY, nobody_runs_programs};

/// A shop of a dozen services. Those of the second list have a program that stands in for the real one.
const SERVICES: [&[&str]; 2] = [
    &["ad", "cart", "checkout", "currency", "email", "frontend"],
    &[
        "payment",
        "catalog",
        "recommendation",
        "shipping",
        "redis",
        "load",
    ],
];
/// The reasons of the Events by which a process node tells what it does not do.
const REMARKS: [&str; 3] = [
    "Unsupported",
    "MissingClusterDNS",
    "ServiceAccountNotMounted",
];

/// Returns a container as real manifests have it: bounded and confined.
fn container(name: &str, command: &[&str]) -> Value {
    json!({
        "name": name,
        "image": format!("shop/{name}:1"),
        "command": command,
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["true"]}},
        "resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "privileged": false,
            "readOnlyRootFilesystem": true,
        },
    })
}

fn deployment(name: &str, command: &[&str], node: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": node,
                    "imagePullSecrets": [{"name": "registry"}],
                    "terminationGracePeriodSeconds": 1,
                    "containers": [container(name, command)],
                },
            },
        },
    })
}

fn service(name: &str) -> Value {
    let ports = json!([{"port": 8080}]);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": ports},
    })
}

/// Starts the shop, with one Deployment that has a problem, and waits until all others run.
fn open_shop(kubectl: &Kubectl) {
    let node = json!({"setpoint.dev/runtime": "process"});
    let commands: [&[&str]; 2] = [&[], &["sleep", "3600"]];
    let mut items = vec![deployment("broken", &[], &json!({"disk": "none"}))];
    for (names, command) in SERVICES.iter().zip(commands) {
        for name in *names {
            items.extend([deployment(name, command, &node), service(name)]);
        }
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let output = kubectl.with("apply", &list.to_string());
    assert!(output.success, "{}", output.stderr);
    for name in SERVICES.concat() {
        kubectl.ok(&format!("rollout status deployment/{name} --timeout=120s"));
    }
}

/// Returns the reasons and objects of the Events of all namespaces that a selector selects.
fn events(kubectl: &Kubectl, selector: &str) -> Vec<String> {
    let found = kubectl.json(&format!("get events -A --field-selector {selector}"));
    let text = |event: &Value| {
        let about = &event["involvedObject"];
        let part = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = part(&about["name"]);
        let name = name.split('-').next().unwrap_or_default();
        format!("{} {} {name}", part(&event["reason"]), part(&about["kind"]))
    };
    let items = found["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(text).collect()
}

fn only_problems_are_warnings(local: &Local) {
    let kubectl = local.kubectl();
    open_shop(&kubectl);
    eventually("the problem is told", || {
        let warnings = events(&kubectl, "type=Warning");
        (!warnings.is_empty()).then_some(()).ok_or_else(String::new)
    });
    let warnings: BTreeSet<_> = events(&kubectl, "type=Warning").into_iter().collect();
    let problem = "FailedScheduling Pod broken".to_owned();
    assert_eq!(warnings, BTreeSet::from([problem]));
    let placeholders = events(&kubectl, "reason=Placeholder");
    assert_eq!(placeholders.len(), SERVICES[0].len(), "{placeholders:?}");
    for reason in REMARKS {
        let told = events(&kubectl, &format!("reason={reason}"));
        let expected = format!("{reason} Node node");
        assert!(told.iter().all(|event| *event == expected), "{told:?}");
        // Each of the two process nodes has met the same fields.
        assert!(told.len() <= 2, "{told:?}");
    }
    let unsupported = kubectl.ok("get events -A --field-selector reason=Unsupported -o yaml");
    let fields = [
        "resources.limits",
        "readOnlyRootFilesystem",
        "imagePullSecrets",
    ];
    let named: BTreeSet<_> = fields
        .iter()
        .filter(|field| unsupported.contains(*field))
        .collect();
    assert_eq!(named.len(), fields.len(), "{unsupported}");
}

#[test]
fn an_application_with_networks_has_warnings_of_its_problems_only() {
    let test = "services::warnings::an_application_with_networks_has_warnings_of_its_problems_only";
    if enter_namespace(test, WHAT, &NETWORK) {
        only_problems_are_warnings(&Local::up());
    }
}

#[test]
fn an_application_without_root_has_warnings_of_its_problems_only() {
    let test = "services::warnings::an_application_without_root_has_warnings_of_its_problems_only";
    if enter_namespace(test, "a cluster without root", &NETWORK) && nobody_runs_programs() {
        let local = Local::new(Some(NOBODY));
        local.start(&[]);
        only_problems_are_warnings(&local);
    }
}
