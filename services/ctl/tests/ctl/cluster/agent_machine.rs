//! A machine whose agent joins a cluster.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::cluster::harness::{Cluster, refusal, stdout_of};

/// A state directory of another machine, for an agent alone. The agent is stopped when dropped.
pub struct AgentMachine<'a> {
    cluster: &'a Cluster,
    pub state: PathBuf,
}

impl<'a> AgentMachine<'a> {
    pub fn new(cluster: &'a Cluster, name: &str) -> Self {
        let state = cluster.root.path().join(name);
        Self { cluster, state }
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let state = self.state.display().to_string();
        self.cluster
            .run(&[&["--state", &state], arguments].concat())
    }

    /// Runs a command that `setpoint token create` has printed.
    pub fn follow(&self, command: &str) -> Output {
        let words: Vec<_> = command.split_whitespace().skip(1).collect();
        self.run(&words)
    }

    /// Returns why it is refused.
    pub fn refused(&self, command: &str) -> String {
        refusal(&self.follow(command))
    }
}

impl Drop for AgentMachine<'_> {
    fn drop(&mut self) {
        self.run(&["down"]);
    }
}

/// Makes a token with these further arguments. Returns the command that joins by it.
pub fn create(cluster: &Cluster, node: &str, more: &[&str]) -> String {
    let arguments = ["token", "create", "--for", "agent", "--node", node];
    let output = cluster.run(&[&arguments, more, &["--print-join-command"]].concat());
    stdout_of(&output).trim().to_owned()
}

pub fn kubectl(cluster: &Cluster, arguments: &str) -> Output {
    let kubeconfig = cluster.root.path().join(".setpoint/kubeconfig");
    let mut command = Command::new("kubectl");
    let command = command.env("KUBECONFIG", kubeconfig);
    command.args(arguments.split(' ')).output().unwrap()
}

pub fn kubectl_create(cluster: &Cluster, object: &Value) {
    let file = cluster.root.path().join("object.json");
    fs::write(&file, object.to_string()).unwrap();
    stdout_of(&kubectl(cluster, &format!("create -f {}", file.display())));
}

/// Creates the Pod `on-worker` on the node `worker-1`.
pub fn create_pod(cluster: &Cluster) {
    let sleep = json!({ "name": "main", "image": "tools", "command": ["sleep", "1000"] });
    kubectl_create(
        cluster,
        &json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "on-worker" },
            "spec": { "nodeName": "worker-1", "containers": [sleep] },
        }),
    );
}
