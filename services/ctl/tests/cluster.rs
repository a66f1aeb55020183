//! `setpoint` on a whole cluster of real processes.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// A cluster in a folder of its own. Dropping it takes it down.
struct Cluster {
    root: TempDir,
    ports: [u16; 3],
}

impl Cluster {
    fn new() -> Self {
        let binary = Path::new(env!("CARGO_BIN_EXE_setpoint"));
        assert!(
            binary.with_file_name("gateway").is_file(),
            "build the workspace first: cargo build --workspace"
        );
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = held.map(|listener| listener.local_addr().unwrap().port());
        Self {
            root: tempfile::tempdir().unwrap(),
            ports,
        }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command
            .args(arguments)
            .current_dir(self.root.path())
            .output()
            .unwrap()
    }

    fn up(&self, more: &[&str]) -> String {
        let [port, etcd, peer] = self.ports.map(|port| port.to_string());
        let ports = [
            "up",
            "--port",
            &port,
            "--etcd-port",
            &etcd,
            "--etcd-peer-port",
            &peer,
        ];
        said(&self.run(&[&ports, more].concat()))
    }

    /// `<service>-<n>` → process id.
    fn pids(&self) -> BTreeMap<String, i32> {
        let files = fs::read_dir(self.root.path().join(".setpoint/run"))
            .unwrap()
            .flatten();
        let pids = files.filter(|file| file.path().extension().is_some_and(|end| end == "pid"));
        let pid = |file: &fs::DirEntry| {
            fs::read_to_string(file.path())
                .unwrap()
                .trim()
                .parse()
                .unwrap()
        };
        pids.map(|file| {
            (
                file.path()
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned(),
                pid(&file),
            )
        })
        .collect()
    }

    /// The status of a request to the gateway.
    fn ask(&self, method: &str, path: &str, body: &str) -> u16 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[0])).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// A process that ended but was not yet collected has an id, and no environment.
fn lives(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| !environment.is_empty())
}

#[test]
fn a_cluster_comes_up_goes_down_and_keeps_its_objects() {
    let cluster = Cluster::new();
    let text = cluster.up(&[]);
    assert!(text.contains("Setpoint is ready after "), "{text}");
    assert!(
        text.contains("kubectl apply -f deploy/manifests/web-frontend.yaml"),
        "{text}"
    );
    let kubeconfig = fs::read_to_string(cluster.root.path().join(".setpoint/kubeconfig")).unwrap();
    assert!(
        kubeconfig.contains(&format!("http://127.0.0.1:{}", cluster.ports[0])),
        "{kubeconfig}"
    );
    assert_eq!(
        said(&cluster.run(&["status"])).matches(" ready\n").count(),
        11
    );

    let before = cluster.pids();
    assert_eq!(before.len(), 11);
    let text = cluster.up(&[]);
    assert!(
        text.starts_with("Setpoint is running already; nothing was changed."),
        "{text}"
    );
    assert_eq!(cluster.pids(), before);

    let (collection, object) = (
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/kept",
    );
    assert_eq!(
        cluster.ask("POST", collection, r#"{"metadata":{"name":"kept"}}"#),
        201
    );
    let text = said(&cluster.run(&["down"]));
    assert!(
        text.contains("Setpoint is down: 11 processes stopped"),
        "{text}"
    );
    assert!(!text.contains("killed"), "{text}");
    assert!(before.values().all(|pid| !lives(*pid)));
    cluster.up(&[]);
    assert_eq!(cluster.ask("GET", object, ""), 200);
    cluster.up(&["--fresh"]);
    assert_eq!(cluster.ask("GET", object, ""), 404);
}

#[test]
fn what_is_missing_of_a_cluster_is_started_and_the_rest_is_left_alone() {
    let cluster = Cluster::new();
    cluster.up(&["--profile", "fast"]);
    let before = cluster.pids();
    kill(Pid::from_raw(before["scheduler-1"]), Signal::SIGKILL).unwrap();
    let status = cluster.run(&["status"]);
    assert_eq!(status.status.code(), Some(1));

    let text = cluster.up(&["--profile", "fast"]);
    assert!(
        text.contains("starting the 1 of 11 processes that are missing"),
        "{text}"
    );
    let mut after = cluster.pids();
    assert_ne!(
        after.remove("scheduler-1"),
        before.get("scheduler-1").copied()
    );
    assert!(after.iter().all(|(name, pid)| before[name] == *pid));
}

#[test]
fn the_settings_files_set_nothing_that_does_not_exist() {
    let config = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config"));
    let files: Vec<_> = fs::read_dir(config)
        .unwrap()
        .flatten()
        .map(|file| file.path())
        .collect();
    assert_eq!(files.len(), 5);
    for file in files {
        let service = file.file_stem().unwrap();
        let mut command =
            Command::new(Path::new(env!("CARGO_BIN_EXE_setpoint")).with_file_name(service));
        // The flag is wrong, so that it does not start; it is looked at after the file.
        let output = command
            .arg("--config")
            .arg(&file)
            .arg("--drain=soon")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("for key `drain`"), "{text}");
    }
}
