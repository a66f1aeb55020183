//! Operators that know nothing of Setpoint, each written with an unmodified library, and servers that the gateway
//! calls.

mod conversion_webhook;
mod extension_server;
mod in_pod;
mod kopf;
mod kube;
mod sample_controller;
mod website;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_tests::{Cluster, Kubectl, Process, eventually};

/// A running operator. Dropping it kills it.
struct Operator {
    process: Process,
    log: PathBuf,
}

impl Operator {
    /// Starts a command with the cluster's kubeconfig; its output goes to `<name>.log` in the cluster's directory.
    fn start(cluster: &Cluster, name: &str, mut command: Command) -> Self {
        let log = cluster.directory().join(format!("{name}.log"));
        let output = File::create(&log).expect("it is writable");
        let errors = output.try_clone().expect("a file can be opened twice");
        command
            .env("KUBECONFIG", cluster.directory().join("kubeconfig"))
            .stdout(output)
            .stderr(errors);
        let process = Process::start(command);
        Self { process, log }
    }

    /// Returns its output so far.
    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its log has `text` at least `times`.
    fn logs(&self, text: &str, times: usize) {
        eventually(&format!("{times} × {text:?} is logged"), || {
            let log = self.log();
            (log.matches(text).count() >= times)
                .then_some(())
                .ok_or(log)
        });
    }
}

/// Returns the path of a file beside this one.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("e2e/operators")
        .join(name)
}

/// Makes a certificate for a name, which is its own CA: `server.crt` and `server.key`. Returns it in base64.
fn make_certificate(directory: &Path, name: &str) -> String {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(' '))
        .args([
            "-subj",
            "/CN=server",
            "-addext",
            &format!("subjectAltName={name}"),
        ])
        .args(["-keyout", "server.key", "-out", "server.crt"])
        .current_dir(directory)
        .output()
        .expect("tests/prepare has installed openssl");
    assert!(made.status.success(), "{made:?}");
    let encoded = Command::new("base64")
        .args(["-w0", "server.crt"])
        .current_dir(directory)
        .output();
    let encoded = encoded.expect("base64 is one of the coreutils").stdout;
    String::from_utf8(encoded).expect("base64 is ASCII")
}

/// Starts a server with that certificate on a port that is free.
fn start_server(cluster: &Cluster, script: &str) -> Operator {
    let mut command = Command::new("python3");
    command
        .arg(beside(script))
        .arg("0")
        .args(["server.crt", "server.key"])
        .current_dir(cluster.directory());
    Operator::start(cluster, script.trim_end_matches(".py"), command)
}

/// Waits until a server serves. Returns its port.
fn port(server: &Operator) -> u16 {
    eventually("the server serves", || {
        let log = server.log();
        let port = log.trim().strip_prefix("serving ");
        port.and_then(|port| port.parse().ok()).ok_or(log)
    })
}

/// Applies a definition and waits until its kind is served.
fn define(kubectl: &Kubectl, definition: &str) {
    let path = beside(definition).display().to_string();
    kubectl.ok(&format!("apply -f {path}"));
    kubectl.ok(&format!(
        "wait -f {path} --for=condition=Established --timeout=30s"
    ));
}

fn apply(kubectl: &Kubectl, manifest: &str) {
    let output = kubectl.with("apply", manifest);
    assert!(output.success, "{}", output.stderr);
}

/// Waits until a field of an object has a value.
fn until(kubectl: &Kubectl, object: &str, path: &str, value: &str) {
    eventually(&format!("{path} of {object} is {value:?}"), || {
        let output = kubectl.run(&format!("get {object} -o jsonpath={{{path}}}"));
        let holds = output.success && output.stdout == value;
        holds.then_some(()).ok_or(format!("{output:?}"))
    });
}

/// Waits until an object does not exist.
fn until_gone(kubectl: &Kubectl, object: &str) {
    eventually(&format!("{object} is gone"), || {
        let output = kubectl.run(&format!("get {object}"));
        output
            .stderr
            .contains("NotFound")
            .then_some(())
            .ok_or(format!("{output:?}"))
    });
}

fn field(kubectl: &Kubectl, object: &str, path: &str) -> String {
    kubectl.ok(&format!("get {object} -o jsonpath={{{path}}}"))
}
