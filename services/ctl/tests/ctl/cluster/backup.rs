//! `setpoint backup` and `setpoint restore`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use setpoint_testkit::Etcd;
use tokio::runtime::Runtime;

use crate::cluster::harness::{Cluster, eventually, stdout_of};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Keys and values as version 0.1.0 had them in November 2026, without the objects that each gateway makes itself, and
/// without keys: a line has a key of etcd and its value in Base64.
const STORED_BEFORE: &str = include_str!("stored-2026-11.txt");

struct Scene {
    cluster: Cluster,
    file: PathBuf,
}

impl Scene {
    fn start() -> Self {
        let cluster = Cluster::new();
        cluster.up(&["--replicas", "1"]);
        let file = cluster.root.path().join("backup");
        Self { cluster, file }
    }

    fn kubectl(&self, arguments: &str) -> Output {
        let mut command = Command::new("kubectl");
        command.env("KUBECONFIG", self.cluster.state_dir().kubeconfig());
        command.args(arguments.split(' ')).output().unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        let text = stdout_of(&self.kubectl(&format!("{arguments} -o json")));
        serde_json::from_str(&text).unwrap()
    }

    /// Creates a ConfigMap and returns the revision of its creation.
    fn create(&self, name: &str) -> u64 {
        revision(&self.json(&format!("create configmap {name}")))
    }

    fn backup(&self) -> String {
        stdout_of(&self.cluster.run(&["backup", self.file.to_str().unwrap()]))
    }

    fn restore(&self, more: &[&str]) -> Output {
        let command = [&["restore", self.file.to_str().unwrap()], more].concat();
        self.cluster.run(&command)
    }

    /// Returns the error of a read at exactly this revision.
    fn stale_read(&self, revision: u64) -> String {
        let at = format!("resourceVersion={revision}&resourceVersionMatch=Exact");
        let read = self.kubectl(&format!("get --raw {CONFIG_MAPS}?{at}"));
        assert!(
            !read.status.success(),
            "{}",
            String::from_utf8_lossy(&read.stdout)
        );
        String::from_utf8(read.stderr).unwrap()
    }

    fn token(&self) -> String {
        let token = stdout_of(&self.kubectl("create token default"));
        token.trim().to_owned()
    }

    /// Returns whether the API takes a token.
    fn knows(&self, token: &str) -> bool {
        let server = self.json("config view --minify --raw");
        let cluster = &server["clusters"][0]["cluster"];
        let server = cluster["server"].as_str().unwrap();
        let ca = self.cluster.root.path().join(".setpoint/pki/ca.crt");
        let ca = ca.to_str().unwrap();
        let whoami = Command::new("kubectl")
            .env("KUBECONFIG", "/dev/null")
            .args([
                "--server",
                server,
                "--certificate-authority",
                ca,
                "--token",
                token,
            ])
            .args(["auth", "whoami"])
            .output();
        whoami.unwrap().status.success()
    }
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str().unwrap();
    text.parse().unwrap()
}

/// Checks DG21, while clients write and watch.
#[test]
fn a_restore_under_load_brings_the_objects_of_the_backup_and_answers_nothing_from_before() {
    let scene = Scene::start();
    let cluster = &scene.cluster;
    scene.create("kept");
    stdout_of(&scene.kubectl("create deployment web --image=none --replicas=2"));
    let ready = "wait --for=condition=Available deployment/web --timeout=60s";
    stdout_of(&scene.kubectl(ready));
    let summary = scene.backup();
    assert!(summary.contains(" 1 deployments.apps\n"), "{summary}");
    let mode = fs::metadata(&scene.file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = scene.create("lost");
    stdout_of(&scene.kubectl("delete configmap kept"));
    let (_, term) = cluster.leader("deployment-controller");

    let ends = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let load = scope.spawn(|| load(&scene, &ends));
        let restored = stdout_of(&scene.restore(&[]));
        assert!(
            restored.contains(" objects were restored after "),
            "{restored}"
        );
        let after = scene.create("after");
        ends.store(true, Ordering::Relaxed);
        let written = load.join().unwrap();
        assert!(
            written.iter().any(|revision| *revision < after),
            "{written:?}"
        );
        written
    });
    assert!(written.is_sorted(), "revisions went back: {written:?}");
    stdout_of(&scene.kubectl("get configmap kept"));
    let lost = scene.kubectl("get configmap lost");
    let lost = String::from_utf8(lost.stderr).unwrap();
    assert!(lost.contains("(NotFound)"), "{lost}");
    let stale = scene.stale_read(before);
    assert!(stale.contains("(Expired)"), "{stale}");
    let watch =
        format!("get --raw {CONFIG_MAPS}?watch=1&timeoutSeconds=5&resourceVersion={before}");
    let watch = scene.kubectl(&watch);
    let text = [watch.stdout, watch.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("Expired") || text.contains("too old"),
        "{text}"
    );
    let (_, next) = cluster.leader("deployment-controller");
    assert!(next > term + 1_000_000, "the term {next} after {term}");
    stdout_of(&scene.kubectl("scale deployment web --replicas=3"));
    eventually("the Deployment has three Pods", || {
        let ready = scene.json("get deployment web")["status"]["readyReplicas"] == 3;
        ready.then_some(())
    });
}

/// Creates ConfigMaps until told to end; returns the revisions of those that were acknowledged.
fn load(scene: &Scene, ends: &AtomicBool) -> Vec<u64> {
    let mut revisions = Vec::new();
    for n in 0.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let created = scene.kubectl(&format!("create configmap load-{n} -o json"));
        // Without a gateway they fail.
        if let Ok(created) = serde_json::from_slice(&created.stdout) {
            revisions.push(revision(&created));
        }
    }
    revisions
}

#[test]
fn tokens_that_a_lost_key_has_signed_are_refused_after_a_restore() {
    let scene = Scene::start();
    let token = eventually("a token is made", || {
        let made = scene.kubectl("get serviceaccount default").status.success();
        made.then(|| scene.token())
    });
    scene.backup();
    assert!(scene.knows(&token));
    stdout_of(&scene.restore(&[]));
    assert!(scene.knows(&token), "the key of the backup is the same");
    stdout_of(&scene.cluster.run(&["down"]));
    stdout_of(&scene.restore(&["--new-token-keys"]));
    scene.cluster.up(&["--replicas", "1"]);
    assert!(!scene.knows(&token));
    assert!(scene.knows(&scene.token()));
}

#[test]
fn a_file_that_is_no_backup_changes_nothing() {
    let scene = Scene::start();
    scene.create("kept");
    scene.backup();
    let mut content = fs::read(&scene.file).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&scene.file, content).unwrap();
    let pids = scene.cluster.pids();
    let refused = scene.restore(&[]);
    assert_eq!(refused.status.code(), Some(1));
    let text = String::from_utf8(refused.stderr).unwrap();
    let reason = "the file is not a snapshot of etcd, or is damaged: its digest does not match\n";
    assert!(text.contains(reason), "{text}");
    assert_eq!(scene.cluster.pids(), pids);
    stdout_of(&scene.kubectl("get configmap kept"));
    let check = ["backup", "--check", scene.file.to_str().unwrap()];
    assert_eq!(scene.cluster.run(&check).status.code(), Some(1));
    let again = ["backup", scene.file.to_str().unwrap()];
    let text = String::from_utf8(scene.cluster.run(&again).stderr).unwrap();
    assert!(text.contains("exists already\n"), "{text}");
}

/// Stores a value in Base64, by the JSON interface of etcd.
fn put(etcd: &Etcd, key: &str, value: &str) {
    let body = json!({ "key": BASE64.encode(key), "value": value }).to_string();
    let url = format!("{}/v3/kv/put", etcd.url());
    let put = Command::new("curl")
        .args(["-fsS", "-d", &body, &url])
        .output();
    stdout_of(&put.unwrap());
}

#[test]
fn a_backup_of_an_earlier_version_is_restored() {
    let scene = Scene::start();
    let etcd = Runtime::new().unwrap().block_on(Etcd::start());
    for line in STORED_BEFORE.lines() {
        let (key, value) = line.split_once(' ').unwrap();
        put(&etcd, key, value);
    }
    let save = [
        "backup",
        scene.file.to_str().unwrap(),
        "--etcd",
        &etcd.url(),
    ];
    let summary = stdout_of(&scene.cluster.run(&save));
    assert!(!summary.contains("cannot be read"), "{summary}");
    let (_, term) = scene.cluster.leader("deployment-controller");
    stdout_of(&scene.restore(&[]));
    let values = [
        ("configmap kept", "/data/a", "b"),
        ("secret password", "/data/p", "aGlkZGVu"),
        ("crontab nightly", "/spec/cronSpec", "0 3 * * *"),
        ("role reader -n team", "/rules/0/verbs/0", "get"),
    ];
    for (object, path, value) in values {
        let read = scene.json(&format!("get {object}"));
        assert_eq!(read.pointer(path).unwrap(), value, "{object}");
    }
    let (_, next) = scene.cluster.leader("deployment-controller");
    assert!(next > term, "the term {next} after {term}");
    stdout_of(&scene.kubectl("scale deployment web --replicas=3"));
    eventually("the Deployment has three Pods", || {
        let ready = scene.json("get deployment web")["status"]["readyReplicas"] == 3;
        ready.then_some(())
    });
}
