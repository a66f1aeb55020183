//! The loop of `deploy/manifests/gitops`, which applies a folder again and again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use setpoint_tests::{Cluster, Kubectl, Process, eventually};

use crate::web::text;

/// Edits until one does not fall between the two reads of a comparison. Few do.
const TRIES: usize = 5;

/// A running loop, and its log.
struct Loop {
    _process: Process,
    log: PathBuf,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/manifests/gitops")
}

fn sync(cluster: &Cluster) -> Command {
    let mut command = Command::new(folder().join("sync"));
    command.env("KUBECONFIG", cluster.directory().join("kubeconfig"));
    command
}

impl Loop {
    fn start(cluster: &Cluster, manager: &str, folder: &Path) -> Self {
        let log = cluster.directory().join(format!("{manager}.log"));
        let mut command = sync(cluster);
        command
            .arg(folder)
            .envs([("MANAGER", manager), ("INTERVAL", "0.1")])
            .stdout(File::create(&log).expect("it is writable"));
        Self {
            _process: Process::start(command),
            log,
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has compared once more and found no difference.
    fn synced(&self) {
        let synced = || self.log().matches("Synced\n").count();
        // The comparison that runs now may have begun before a change of the test.
        let goal = synced() + 2;
        eventually("the loop finds no difference", || {
            (synced() >= goal).then_some(()).ok_or_else(|| self.log())
        });
    }
}

#[test]
fn a_loop_undoes_manual_edits_and_two_loops_are_reported() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    let desired = folder();
    let gitops = Loop::start(&cluster, "gitops", &desired);
    gitops.synced();
    a_manual_edit_is_undone(&cluster, &gitops);
    a_field_of_another_owner_is_kept(&cluster, &gitops);
    two_loops_are_reported(&cluster, &kubectl);
}

fn colour(kubectl: &Kubectl) -> String {
    kubectl.ok("get configmap shop -o jsonpath={.data.colour}")
}

fn a_manual_edit_is_undone(cluster: &Cluster, gitops: &Loop) {
    let kubectl = cluster.kubectl();
    let told = "OutOfSync\nv1.ConfigMap.default.shop\n-  colour: blue\n+  colour: red\n";
    // One that falls between the two reads of a comparison is undone, but not shown.
    let is_told = (0..TRIES).any(|_| {
        kubectl.ok(r#"patch configmap shop --field-manager=alice -p {"data":{"colour":"blue"}}"#);
        gitops.synced();
        assert_eq!(colour(&kubectl), "red");
        gitops.log().contains(told)
    });
    assert!(is_told, "{}", gitops.log());
    let history = cluster.setpoint_json(0, "history configmap/shop --diff");
    let history = history.expect("the object exists");
    let versions = history["versions"].as_array().cloned().unwrap_or_default();
    let shown = versions.iter().map(|version| {
        let parts = [
            "/cause/writer",
            "/what",
            "/changes/0/path",
            "/changes/0/after",
        ];
        parts.map(|part| text(version, part)).join(" ")
    });
    let shown: Vec<_> = shown.collect();
    let undone = [
        r#"gitops changed data[colour] "red""#,
        r#"alice changed data[colour] "blue""#,
    ];
    assert!(shown.starts_with(&undone.map(str::to_owned)), "{history}");
    assert_eq!(shown.last().map(String::as_str), Some("gitops created  "));
}

/// The autoscaler's field is not in the desired state.
fn a_field_of_another_owner_is_kept(cluster: &Cluster, gitops: &Loop) {
    let kubectl = cluster.kubectl();
    kubectl.ok("scale deployment/shop --replicas=4");
    gitops.synced();
    assert_eq!(
        kubectl.ok("get deployment shop -o jsonpath={.spec.replicas}"),
        "4"
    );
    let check = |folder: &Path| {
        let output = sync(cluster).arg("--check").arg(folder).output();
        output.expect("it is executable").status.code()
    };
    assert_eq!(check(&folder()), Some(0));
    assert_eq!(check(&other_opinion(cluster)), Some(1));
    assert_eq!(check(&cluster.directory().join("none")), Some(2));
}

/// Returns a copy of the desired state with another colour.
fn other_opinion(cluster: &Cluster) -> PathBuf {
    let copy = cluster.directory().join("other");
    fs::create_dir_all(&copy).expect("it is writable");
    for name in ["kustomization.yaml", "settings.yaml", "shop.yaml"] {
        let manifest = fs::read_to_string(folder().join(name)).expect("it is readable");
        let manifest = manifest.replace("colour: red", "colour: green");
        fs::write(copy.join(name), manifest).expect("it is writable");
    }
    copy
}

fn two_loops_are_reported(cluster: &Cluster, kubectl: &Kubectl) {
    let _other = Loop::start(cluster, "other", &other_opinion(cluster));
    let message = "gitops and other undo each other's writes of data[colour]";
    eventually("an Event names both managers and the field", || {
        let events = kubectl.ok("get events --field-selector reason=FieldFlapping");
        events.contains(message).then_some(()).ok_or(events)
    });
    let why = eventually("the flap explains the object", || {
        let why = cluster.setpoint_json(0, "why configmap/shop")?;
        let flap = why.pointer("/flaps/0").cloned();
        flap.ok_or(why.to_string())
    });
    assert_eq!(
        why["managers"],
        Value::from(vec!["gitops", "other"]),
        "{why}"
    );
}
