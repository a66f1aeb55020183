//! The allowed dependencies between the crates of this workspace, and what its documents name.

mod documents;
mod line_lengths;
mod rooms;
mod vulnerabilities;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Each crate, and the crates of the workspace that it may depend on outside of tests.
const ARROWS: &[(&str, &[&str])] = &[
    ("proto", &[]),
    // Selectors, owners and conditions are parts of messages.
    ("model", &["proto"]),
    ("codec", &["model", "proto", "schema"]),
    // A kind knows its message and the rules of its fields, but neither a store nor other objects.
    ("kinds", &["cel", "codec", "model", "proto", "schema"]),
    // Decisions about requests, from the rules of roles.
    ("rbac", &["model", "proto"]),
    ("pod-security", &["model", "proto"]),
    ("fairness", &["proto"]),
    // Errors are those of fields, and users those of requests.
    ("apiserver-config", &["cel", "document", "kinds", "model"]),
    // Names and quantities are checked by the same rules.
    ("cel", &["model"]),
    ("schema", &["cel", "model"]),
    // Bodies of requests, of any server.
    ("transport", &[]),
    ("openapi", &["codec", "proto"]),
    // Connections of kubectl, and those to container runtimes.
    ("spdy", &[]),
    // All processes have tasks that are restarted after a panic.
    ("task", &[]),
    ("telemetry", &["proto"]),
    // The files of a process's identity, for its listener and for its connections.
    ("tls", &[]),
    (
        "controller",
        &[
            "host",
            "model",
            "proto",
            "task",
            "telemetry",
            "tls",
            "transport",
        ],
    ),
    ("host", &["proto", "task", "telemetry", "tls"]),
    // The state of containers is as private to its user as that of any process: the rule is in host.
    // The streaming servers of container runtimes speak SPDY.
    ("runtime", &["host", "model", "proto", "spdy", "task"]),
    ("workload", &["controller", "model", "proto"]),
    // The registration of metrics is in telemetry.
    (
        "store",
        &[
            "codec",
            "encryption",
            "model",
            "proto",
            "task",
            "telemetry",
            "tls",
            "transport",
        ],
    ),
    // The files of settings that Kubernetes defines.
    ("document", &[]),
    // Durations in its file are as in objects; the registration of metrics is in telemetry.
    ("encryption", &["document", "proto", "telemetry"]),
    // Bodies are objects of kinds; the registration of metrics is in telemetry.
    (
        "audit",
        &["codec", "document", "model", "proto", "telemetry"],
    ),
    (
        "gateway",
        &[
            "apiserver-config",
            "audit",
            "cel",
            "codec",
            "document",
            "encryption",
            "fairness",
            "host",
            "kinds",
            "model",
            "openapi",
            "pod-security",
            "proto",
            "rbac",
            "schema",
            "spdy",
            "store",
            "task",
            "telemetry",
            "tls",
        ],
    ),
    // Hosts controllers.
    (
        "controller-manager",
        &[
            "bootstraptoken-controller",
            "certificatesigningrequest-controller",
            "controller",
            "cronjob-controller",
            "daemonset-controller",
            "deployment-controller",
            "disruption-controller",
            "endpointslice-controller",
            "garbage-collector-controller",
            "horizontalpodautoscaler-controller",
            "host",
            "job-controller",
            "namespace-controller",
            "node-ipam-controller",
            "node-lifecycle-controller",
            "persistentvolume-controller",
            "podgc-controller",
            "replicaset-controller",
            "resourcequota-controller",
            "service-cidrs-controller",
            "service-lb-controller",
            "serviceaccount-controller",
            "statefulset-controller",
        ],
    ),
    // All services, each of which stays a process of its own.
    (
        "multicall",
        &[
            "controller-manager",
            "ctl",
            "deployment-controller",
            "dns",
            "gateway",
            "node-agent",
            "proxy",
            "replicaset-controller",
            "scheduler",
        ],
    ),
    // The form of certificates is in tls.
    (
        "certificatesigningrequest-controller",
        &["controller", "host", "model", "proto", "tls"],
    ),
    (
        "bootstraptoken-controller",
        &["controller", "model", "proto"],
    ),
    ("cronjob-controller", SERVICE),
    ("daemonset-controller", SERVICE),
    ("deployment-controller", SERVICE),
    ("disruption-controller", SERVICE),
    ("endpointslice-controller", SERVICE),
    ("garbage-collector-controller", SERVICE),
    ("horizontalpodautoscaler-controller", SERVICE),
    ("job-controller", SERVICE),
    ("namespace-controller", SERVICE),
    ("node-ipam-controller", SERVICE),
    ("node-lifecycle-controller", SERVICE),
    ("persistentvolume-controller", SERVICE),
    ("podgc-controller", SERVICE),
    ("replicaset-controller", SERVICE),
    ("resourcequota-controller", SERVICE),
    ("service-cidrs-controller", SERVICE),
    ("service-lb-controller", SERVICE),
    ("serviceaccount-controller", SERVICE),
    ("statefulset-controller", SERVICE),
    // The spans of transactions have the causes as parents.
    (
        "proxy",
        &["controller", "host", "model", "proto", "telemetry", "tls"],
    ),
    // Beside the agent of a node, it serves with another certificate than the one of its connections.
    (
        "dns",
        &[
            "controller",
            "host",
            "model",
            "proto",
            "task",
            "telemetry",
            "tls",
        ],
    ),
    ("scheduler", SERVICE),
    // A static Pod is read from a document, and has the defaults and the validation of its kind.
    (
        "node-agent",
        &[
            "codec",
            "controller",
            "document",
            "host",
            "kinds",
            "model",
            "proto",
            "runtime",
            "task",
            "tls",
        ],
    ),
    // Backups are read from and written to etcd itself.
    (
        "ctl",
        &["host", "controller", "model", "proto", "store", "tls"],
    ),
    // The tests of any crate may use it.
    ("testkit", &[]),
];
const SERVICE: &[&str] = &[
    "host",
    "controller",
    "model",
    "proto",
    "task",
    "telemetry",
    "workload",
];

/// Crates that only tests use. Those that are not in `ARROWS` may depend on any crate.
const TESTS: &[&str] = &[
    "testkit",
    "objects",
    "simulation",
    "tests",
    "determinism",
    "fuzz",
];

/// Features that only tests enable.
const TEST_FEATURES: &[&str] = &["contract", "testing"];

/// External crates that only one crate may use.
const ONLY: &[(&str, &str)] = &[("etcd-client", "store"), ("prost-build", "proto")];

/// Crates without I/O and tracing, and the dependencies that they must not have. The services of `proto` need tonic.
const PURE: &[(&str, &[&str])] = &[
    (
        "kinds",
        &[
            "axum",
            "futures",
            "hyper",
            "prometheus",
            "store",
            "task",
            "telemetry",
            "testkit",
            "tokio",
            "tonic",
            "tracing",
        ],
    ),
    ("model", &["tokio", "tonic", "axum", "hyper"]),
    ("rbac", &["tokio", "tonic", "axum", "hyper", "tracing"]),
    ("fairness", &["tokio", "tonic", "axum", "hyper", "tracing"]),
    (
        "pod-security",
        &["tokio", "tonic", "axum", "hyper", "tracing"],
    ),
    (
        "apiserver-config",
        &["tokio", "tonic", "axum", "hyper", "tracing"],
    ),
    ("cel", &["tokio", "tonic", "axum", "hyper", "tracing"]),
    ("schema", &["tokio", "tonic", "axum", "hyper", "tracing"]),
    ("openapi", &["tokio", "tonic", "axum", "hyper", "http"]),
    (
        "proto",
        &["tokio", "tracing", "opentelemetry", "tracing-opentelemetry"],
    ),
];

/// Crates of `PURE` whose tests are pure, too.
const PURE_TESTS: &[&str] = &["kinds"];

/// Returns the dependencies of each crate outside of its tests, by short name.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    packages().iter().map(arrows_of).collect()
}

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

fn arrows_of(package: &Value) -> (String, BTreeSet<String>) {
    let names = shipped(package).map(|one| short(&one["name"]));
    (short(&package["name"]), names.collect())
}

/// Returns the dependencies of a package outside of its tests.
fn shipped(package: &Value) -> impl Iterator<Item = &Value> {
    let dependencies = package["dependencies"].as_array().expect("dependencies");
    dependencies.iter().filter(|one| one["kind"] != "dev")
}

fn short(name: &Value) -> String {
    let name = name.as_str().expect("a name");
    name.strip_prefix("setpoint-").unwrap_or(name).to_owned()
}

#[test]
fn crates_depend_on_allowed_crates_only() {
    let dependencies = dependencies();
    let ours: BTreeSet<_> = dependencies.keys().cloned().collect();
    for (name, uses) in &dependencies {
        let allowed = ARROWS.iter().find(|(crate_name, _)| crate_name == name);
        let Some((_, allowed)) = allowed else {
            assert!(TESTS.contains(&name.as_str()), "{name} is not in ARROWS");
            continue;
        };
        // The parser `cel` has the name of our crate that uses it.
        for used in uses.intersection(&ours).filter(|used| *used != name) {
            assert!(
                allowed.contains(&used.as_str()),
                "{name} must not know {used}"
            );
        }
    }
}

#[test]
fn crates_of_tests_are_dependencies_of_tests_only() {
    for (name, uses) in dependencies() {
        let is_test = |name: &str| TESTS.contains(&name);
        let ships = |used: &String| is_test(used) && !is_test(&name);
        assert!(
            !uses.iter().any(ships),
            "{name} depends on a crate for tests"
        );
    }
}

#[test]
fn features_of_tests_are_enabled_by_tests_only() {
    for package in packages() {
        let name = short(&package["name"]);
        for dependency in shipped(&package) {
            let features = dependency["features"].as_array().expect("features");
            let enabled = TEST_FEATURES
                .iter()
                .find(|feature| features.contains(&Value::from(**feature)));
            assert!(
                enabled.is_none() || TESTS.contains(&name.as_str()),
                "{name} enables {enabled:?} of {}",
                dependency["name"]
            );
        }
    }
}

#[test]
fn the_etcd_client_and_the_code_generator_have_one_user_each() {
    for (name, uses) in dependencies() {
        for (foreign, owner) in ONLY {
            let may = name == *owner || TESTS.contains(&name.as_str());
            assert!(may || !uses.contains(*foreign), "{name} uses {foreign}");
        }
    }
}

#[test]
fn pure_crates_do_no_io() {
    for package in packages() {
        let name = short(&package["name"]);
        let Some((_, banned)) = PURE.iter().find(|(pure, _)| *pure == name) else {
            continue;
        };
        let dependencies = package["dependencies"].as_array().expect("dependencies");
        let are_tests_pure = PURE_TESTS.contains(&name.as_str());
        for dependency in dependencies {
            let used = short(&dependency["name"]);
            let counts = are_tests_pure || dependency["kind"] != "dev";
            assert!(
                !counts || !banned.contains(&used.as_str()),
                "{name} uses {used}"
            );
        }
    }
}

#[test]
fn targets_that_build_no_tests_contain_none() {
    for package in packages() {
        let targets = package["targets"].as_array().expect("targets");
        for target in targets.iter().filter(|target| is_untested(target)) {
            for file in sources_of(target, targets) {
                let text = fs::read_to_string(&file).expect("sources are readable");
                let tests = ["#[test]", "#[tokio::test", "proptest!"];
                assert!(
                    !tests.iter().any(|test| text.contains(test)),
                    "{file:?} has tests, but its target has `test = false`"
                );
            }
        }
    }
}

/// Reports whether a target is a library or a program without a test binary.
fn is_untested(target: &Value) -> bool {
    let kinds = ["lib", "bin"].map(Value::from);
    target["test"] == false && kinds.contains(&target["kind"][0])
}

/// Returns the files of a target: those of its folder, or its root alone where a library has the same folder.
fn sources_of(target: &Value, all: &[Value]) -> Vec<PathBuf> {
    let root = root_of(target);
    let is_library = |target: &Value| target["kind"][0] == "lib";
    let shared = |other: &Value| is_library(other) && root_of(other).parent() == root.parent();
    if !is_library(target) && all.iter().any(shared) {
        return vec![root];
    }
    files_in(root.parent().expect("a folder"))
}

fn root_of(target: &Value) -> PathBuf {
    target["src_path"].as_str().expect("a path").into()
}

/// Returns the sources below a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("folders are readable");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(sources_at).collect()
}

fn sources_at(path: PathBuf) -> Vec<PathBuf> {
    if path.is_dir() {
        return files_in(&path);
    }
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    is_source.then_some(path).into_iter().collect()
}
