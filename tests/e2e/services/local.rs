//! A cluster of `setpoint up` whose Services carry traffic, and the Service of a Deployment in it.

use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use setpoint_ctl::launcher::program;
use setpoint_testkit::free_port;
use setpoint_tests::{Kubectl, eventually};
use tempfile::TempDir;

use super::load::ask;

/// An interface with a default route, by which packets for nobody would leave.
pub const NETWORK: [&str; 5] = [
    "link add outside type veth peer name others",
    "addr add 192.0.2.2/24 dev outside",
    "link set outside up",
    "link set others up",
    "route add default via 192.0.2.1",
];
pub const WHAT: &str = "a cluster whose Pods have networks of their own";

/// A cluster of `setpoint up`, which is stopped when it is dropped.
pub struct Local {
    directory: TempDir,
    ports: [String; 2],
    /// The user that has the cluster; `None` for the one of the test.
    user: Option<u32>,
}

impl Local {
    pub fn new(user: Option<u32>) -> Self {
        let directory = TempDir::new().unwrap();
        chown(directory.path(), user, user).unwrap();
        Self {
            directory,
            ports: [(); 2].map(|()| free_port().to_string()),
            user,
        }
    }

    /// Starts one whose Pods have networks of their own.
    pub fn up() -> Self {
        let local = Self::new(None);
        local.start(&["--pod-network", "bridge"]);
        local
    }

    /// Starts the processes that do not run.
    pub fn start(&self, more: &[&str]) {
        let [port, etcd] = &self.ports;
        let arguments = [
            "up",
            "--port",
            port,
            "--etcd-port",
            etcd,
            "--profile",
            "fast",
        ];
        let output = self.setpoint(&[&arguments[..], more].concat());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
    }

    fn setpoint(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = Command::new(program("setpoint").unwrap());
        command.arg("--state").arg(self.directory.path());
        command.current_dir(self.directory.path());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.args(arguments).output().unwrap()
    }

    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(self.directory.path().to_owned())
    }

    /// Kills a process of the cluster.
    pub fn kill(&self, name: &str) {
        kill_recorded(
            &self
                .directory
                .path()
                .join("run")
                .join(format!("{name}.pid")),
        );
    }

    /// Kills the first container of a Pod.
    pub fn kill_container(&self, pod: &Value) {
        let node = pod["spec"]["nodeName"].as_str().unwrap();
        let uid = pod["metadata"]["uid"].as_str().unwrap();
        let path = format!("node/{node}/pods/{uid}/web/0/pid");
        kill_recorded(&self.directory.path().join(path));
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.setpoint(&["down"]);
    }
}

fn kill_recorded(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap());
    kill(pid, Signal::SIGKILL).unwrap();
}

/// Starts a Deployment whose Pods answer each connection with their name, and a Service of it; returns its address.
pub fn serve(kubectl: &Kubectl, replicas: u32) -> SocketAddr {
    let labels = json!({"app": "web"});
    let container = json!({
        "name": "web",
        "image": "web",
        "command": ["busybox", "nc", "-ll", "-p", "80", "-e", "hostname"],
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
        // Connections come until all proxies know that the Pod ends.
        "lifecycle": {"preStop": {"sleep": {"seconds": 2}}},
    });
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            // All at once, which takes less time.
            "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 3,
                    "nodeSelector": {"setpoint.dev/runtime": "process"},
                    "containers": [container],
                },
            },
        },
    });
    let output = kubectl.with("apply", &deployment.to_string());
    assert!(output.success, "{}", output.stderr);
    kubectl.ok("expose deployment web --port=80");
    kubectl.ok("rollout status deployment/web --timeout=60s");
    let service = kubectl.json("get service web");
    let at = format!("{}:80", service["spec"]["clusterIP"].as_str().unwrap());
    let at = at.parse().unwrap();
    eventually("the Service answers", || {
        ask(at).map(drop).map_err(|error| error.to_string())
    });
    at
}
