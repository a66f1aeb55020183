//! A Compose project: the repository's compose.yaml with a name and a port of its own, removed when dropped.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_tests::{Kubectl, free_port};
use tempfile::TempDir;

use crate::engine::{docker, free_prefix, ids, try_docker};

/// The directory of compose.yaml.
pub fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace's root").to_owned()
}

/// The project under test.
pub struct Project {
    compose: &'static [&'static str],
    name: String,
    ports: [(&'static str, u16); 2],
    prefix: String,
    folder: TempDir,
    haunted: RefCell<Vec<String>>,
}

impl Project {
    /// Prepares the images and a project that is not up yet. Returns `None`, with a message, without this Compose
    /// version or without an engine.
    pub fn new(compose: &'static [&'static str]) -> Option<Self> {
        for (command, what) in [
            (&["docker", "info"][..], "container engine"),
            (compose, "this Compose"),
        ] {
            let version = if what == "this Compose" {
                &["version"][..]
            } else {
                &[]
            };
            if !answers(&[command, version].concat()) {
                eprintln!("SKIPPED: no {what}: {command:?} does not answer");
                return None;
            }
        }
        images();
        Some(Self {
            compose,
            name: format!("setpoint-test-{}", std::process::id()),
            ports: ["SETPOINT_PORT", "SETPOINT_JAEGER_PORT"].map(|name| (name, free_port())),
            prefix: free_prefix(),
            folder: TempDir::new().expect("a temporary folder"),
            haunted: RefCell::default(),
        })
    }

    /// Returns the name of the project, which is also that of the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first two bytes of the addresses of its Pods and Services.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns a kubectl with the kubeconfig that the project writes.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.folder.path().join("compose"))
    }

    /// Returns the kubeconfig that the project writes.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("compose/kubeconfig")
    }

    /// Returns the published port of the API.
    pub fn port(&self) -> u16 {
        self.ports[0].1
    }

    /// Runs Compose.
    ///
    /// # Panics
    /// When it fails.
    pub fn compose(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        said(&format!("compose {arguments}"), &output)
    }

    /// Runs Compose's `down`.
    ///
    /// Once in some dozens of runs an engine keeps a network with the endpoint of a removed container until the engine
    /// is restarted (moby issue 43286). A project cannot avoid this, so such a network is reported and ignored.
    ///
    /// # Panics
    /// If it fails for another reason.
    pub fn down(&self, options: &str) {
        let output = self.run(&format!("down {options}"));
        let words = String::from_utf8_lossy(&output.stderr);
        if output.status.success() || !words.contains("has active endpoints") {
            said("compose down", &output);
            return;
        }
        eprintln!("FORGIVEN: the engine keeps an empty network: {words}");
        let mut haunted = self.networks();
        haunted.retain(|network| {
            is_empty(network) && try_docker(&["network", "rm", network]).is_err()
        });
        self.haunted.borrow_mut().extend(haunted);
        // Compose 1 stops at the first network that is kept, and leaves what it would have removed next.
        if options.contains("-v") {
            for volume in self.volumes() {
                docker(&["volume", "rm", &volume]);
            }
        }
    }

    fn volumes(&self) -> Vec<String> {
        let project = format!("label=com.docker.compose.project={}", self.name);
        ids(&["volume", "ls", "-q", "-f", &project])
    }

    fn networks(&self) -> Vec<String> {
        let project = format!("label=com.docker.compose.project={}", self.name);
        let mut networks = ids(&["network", "ls", "-q", "-f", &project]);
        networks.retain(|id| !self.haunted.borrow().contains(id));
        networks
    }

    fn run(&self, arguments: &str) -> Output {
        command(self.compose)
            .args(["-p", &self.name])
            .args(arguments.split_whitespace())
            .envs(self.ports.map(|(name, port)| (name, port.to_string())))
            .env("SETPOINT_STATE", self.folder.path())
            .env("SETPOINT_NETWORK", &self.prefix)
            .current_dir(root())
            .output()
            .expect("it ran before")
    }

    /// Returns the ids of a service's running containers.
    pub fn service(&self, service: &str) -> Vec<String> {
        let project = format!("label=com.docker.compose.project={}", self.name);
        let service = format!("label=com.docker.compose.service={service}");
        ids(&["ps", "-q", "-f", &project, "-f", &service])
    }

    /// Returns the names of the containers that forward ports of this machine.
    pub fn forwarders(&self) -> Vec<String> {
        let cluster = format!("label=setpoint.dev/cluster={}", self.name);
        let ports = ["-f", &cluster, "-f", "label=setpoint.dev/port"];
        ids(&[&["ps", "-a", "--format", "{{.Names}}"], &ports[..]].concat())
    }

    /// Returns `name id` of the containers of Pods, without their sandboxes and what forwards ports.
    pub fn pod_containers(&self) -> Vec<String> {
        let cluster = format!("label=setpoint.dev/cluster={}", self.name);
        let mut containers = ids(&["ps", "-f", &cluster, "--format", "{{.Names}} {{.ID}}"]);
        containers.retain(|container| !container.starts_with("k8s_POD_"));
        containers.retain(|container| !container.starts_with("k8s_port_"));
        containers.sort();
        containers
    }

    /// Returns what the engine still has of the project and its Pods; the project's volumes only on request.
    pub fn left(&self, volumes: bool) -> Vec<String> {
        let project = format!("label=com.docker.compose.project={}", self.name);
        let cluster = format!("label=setpoint.dev/cluster={}", self.name);
        let mut left = ids(&["ps", "-aq", "-f", &project]);
        left.extend(ids(&["ps", "-aq", "-f", &cluster]));
        left.extend(self.networks());
        left.extend(ids(&["volume", "ls", "-q", "-f", &cluster]));
        if volumes {
            left.extend(self.volumes());
        }
        left
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for arguments in ["ps", "logs --no-color --tail 30"] {
                let output = self.run(arguments);
                eprintln!("{}", String::from_utf8_lossy(&output.stdout));
            }
        }
        self.run("down -v -t 5");
    }
}

/// Returns the directory of the programs under test.
pub fn binaries() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let folder = test.ancestors().nth(2);
    folder
        .expect("tests are in target/<profile>/deps")
        .to_owned()
}

/// Builds the images of compose.yaml, ours from the binaries under test. Images that are up to date are kept.
fn images() {
    let output = Command::new(root().join("deploy/offline"))
        .arg("--binaries")
        .arg(binaries())
        .output()
        .expect("it is executable");
    said("deploy/offline", &output);
}

/// Whether no container is attached to this network.
fn is_empty(network: &str) -> bool {
    let attached = docker(&["network", "inspect", "-f", "{{len .Containers}}", network]);
    attached.trim() == "0"
}

fn said(what: &str, output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{what}: {stdout}{stderr}");
    stdout
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn answers(words: &[&str]) -> bool {
    command(words)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// A Compose that fails like the real one when the engine does not remove a network.
const KEPT: &[&str] = &[
    "sh",
    "-c",
    r#"[ "$0" = version ] || { echo "network x has active endpoints" >&2; exit 1; }"#,
];

#[test]
fn a_network_that_the_engine_keeps_is_ignored_if_no_container_is_attached() {
    let Some(project) = Project::new(KEPT) else {
        return;
    };
    let label = format!("com.docker.compose.project={}", project.name);
    let [_, used] = ["empty", "used"].map(|name| {
        let name = format!("{}_{name}", project.name);
        docker(&["network", "create", "--label", &label, &name]);
        name
    });
    docker(&["volume", "create", "--label", &label, &project.name]);
    let before = project.networks();
    let client = ["run", "--rm", "-d", "--network", &used, "busybox:1.36"];
    let client = docker(&[&client[..], &["sleep", "600"]].concat());
    project.down("-v");
    let after = project.networks();
    let volumes = project.volumes();
    let kept = ids(&["network", "ls", "-q", "-f", &format!("name={used}")]);
    docker(&["rm", "-f", client.trim()]);
    // The failure is the one that is ignored.
    if let Err(why) = try_docker(&["network", "rm", &used]) {
        eprintln!("the engine keeps a network: {why}");
    }
    assert_eq!(before.len(), 2);
    assert_eq!(after, kept);
    assert_eq!(volumes, [""; 0]);
}
