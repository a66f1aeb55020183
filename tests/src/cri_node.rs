//! A node whose Pods are sandboxes of a containerd of the test.

use std::process::Command;

use setpoint_ctl::launcher::program;
use setpoint_testkit::{Containerd, busybox_image};

use crate::{Cluster, Kubectl, Size, eventually, fast_election};

/// The image of the containers, and of the sandboxes.
pub const IMAGE: &str = "setpoint-test/e2e:1";
/// The name of the node.
pub const NODE: &str = "node-0";
/// Selects the sandboxes among the containers of containerd.
const SANDBOXES: &str = r#"labels."io.cri-containerd.kind"==sandbox"#;

/// A containerd and the node on it, whose Pods are removed when this is dropped.
pub struct CriNode {
    /// The containerd.
    pub containerd: Containerd,
}

impl CriNode {
    /// Starts a containerd with the image. Returns `None`, and prints a message, if none can run here.
    pub fn start() -> Option<Self> {
        let containerd = Containerd::start(IMAGE)?;
        containerd.import(&busybox_image(IMAGE, "from the image"));
        Some(Self { containerd })
    }

    /// Starts a cluster with the node, and waits until that is Ready.
    pub fn cluster(&self) -> Cluster {
        let size = Size {
            process_nodes: 0,
            simulated_nodes: 0,
            ..Size::default()
        };
        let mut cluster = Cluster::start_with(size, &fast_election());
        // Which sets the taints of nodes.
        let controllers = ["--controllers", "node-lifecycle"].map(str::to_owned);
        let flags = [fast_election(), controllers.into()].concat();
        cluster.service("controller-manager", 0, &flags);
        self.start_agent(&mut cluster);
        until_ready(&cluster.kubectl());
        cluster
    }

    /// Starts the agent of the node.
    pub fn start_agent(&self, cluster: &mut Cluster) {
        let logs = self.containerd.folder().join("logs").display().to_string();
        let flags = [
            "--runtime",
            "cri",
            "--node-name",
            NODE,
            "--cri-endpoint",
            &self.containerd.endpoint(),
            "--cri-pod-logs-dir",
            &logs,
            "--state-dir",
            &cluster.node(NODE).display().to_string(),
        ];
        cluster.service("node-agent", 0, &flags.map(str::to_owned));
    }

    /// Returns the ids of all sandboxes, in their order.
    ///
    /// # Panics
    /// If containerd does not list them.
    pub fn sandboxes(&self) -> Vec<String> {
        self.listed(&[SANDBOXES])
    }

    /// Returns the ids of all sandboxes and containers, in their order.
    ///
    /// # Panics
    /// If containerd does not list them.
    pub fn all(&self) -> Vec<String> {
        self.listed(&[])
    }

    fn listed(&self, filters: &[&str]) -> Vec<String> {
        let words = [&["containers", "list", "-q"], filters].concat();
        let listed = self.containerd.ctr(&words);
        let error = String::from_utf8_lossy(&listed.stderr);
        assert!(listed.status.success(), "{error}");
        let listed = String::from_utf8_lossy(&listed.stdout);
        let mut ids: Vec<_> = listed.lines().map(str::to_owned).collect();
        ids.sort();
        ids
    }

    /// Waits until there are this many sandboxes, and returns their ids.
    pub fn until_sandboxes(&self, count: usize) -> Vec<String> {
        eventually(&format!("there are {count} sandboxes"), || {
            let found = self.sandboxes();
            let message = format!("{found:?}");
            (found.len() == count).then_some(found).ok_or(message)
        })
    }
}

impl Drop for CriNode {
    fn drop(&mut self) {
        let _ = Command::new(program("node-agent").expect("it is beside the test"))
            .args(["sweep", "--runtime=cri", "--node-name", NODE])
            .args(["--cri-endpoint", &self.containerd.endpoint()])
            .status();
    }
}

/// Waits until the node is Ready.
pub fn until_ready(kubectl: &Kubectl) {
    eventually("the node is Ready", || {
        let listed = kubectl.run("get nodes --no-headers").stdout;
        listed.contains(" Ready").then_some(()).ok_or(listed)
    });
}
