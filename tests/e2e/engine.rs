//! The objects of one test's cluster on a Docker engine, removed when dropped.

use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use setpoint_ctl::launcher::program;
use setpoint_tests::{Cluster, Size, eventually, fast_election};

/// An image with a few programs of Debian's static busybox. Its default command sleeps until it is stopped.
pub const IMAGE: &str = "setpoint-test/e2e:1";
const NODE: &str = "node-0";
/// The network of Pods.
const NETWORK: &str = "setpoint-test";

/// A cluster whose only node runs containers on the Docker engine.
pub struct Engine {
    cluster: String,
}

impl Engine {
    /// Returns `None`, and prints a message, if no engine responds.
    pub fn find() -> Option<Self> {
        let answers = Command::new("docker")
            .arg("info")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !answers.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: no Docker engine responds");
            return None;
        }
        known_image();
        let cluster = format!("e2e-{}", std::process::id());
        Some(Self { cluster })
    }

    /// Starts a cluster with the node. Pods reach its gateway, which also listens in their network.
    pub fn cluster(&self) -> Cluster {
        let mut cluster = Cluster::without_etcd();
        cluster.listen_also(self.address());
        let size = Size {
            process_nodes: 0,
            simulated_nodes: 0,
            ..Size::default()
        };
        let mut cluster = cluster.fill(size, &fast_election());
        self.start_agent(&mut cluster);
        let kubectl = cluster.kubectl();
        eventually("the node is Ready", || {
            let listed = kubectl.run("get nodes --no-headers").stdout;
            listed.contains(" Ready").then_some(()).ok_or(listed)
        });
        cluster
    }

    /// Starts the agent of the only node.
    pub fn start_agent(&self, cluster: &mut Cluster) {
        let flags = [
            "--runtime",
            "docker",
            "--node-name",
            NODE,
            "--docker-cluster",
            &self.cluster,
            "--docker-network",
            NETWORK,
            "--docker-pause-image",
            IMAGE,
        ];
        cluster.service("node-agent", 0, &flags.map(str::to_owned));
    }

    /// Returns the address of this machine in the network of Pods, which is made if it does not exist.
    fn address(&self) -> IpAddr {
        if self
            .docker(&format!("network ls -q -f name=^{NETWORK}$"))
            .is_empty()
        {
            self.docker(&format!("network create {NETWORK}"));
        }
        let gateway = "{{range.IPAM.Config}}{{.Gateway}}{{end}}";
        let address = self.docker(&format!("network inspect -f {gateway} {NETWORK}"));
        let address = address.trim().parse();
        address.expect("a network has a gateway")
    }

    /// Runs docker.
    pub fn docker(&self, arguments: &str) -> String {
        let output = Command::new("docker")
            .args(arguments.split_whitespace())
            .output()
            .expect("docker runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {arguments}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Returns `name id` of all running containers.
    pub fn running(&self) -> Vec<String> {
        self.containers("")
    }

    /// Returns `name id` of all containers.
    pub fn all(&self) -> Vec<String> {
        self.containers("--all")
    }

    fn containers(&self, flag: &str) -> Vec<String> {
        let filter = format!("--filter label=setpoint.dev/cluster={}", self.cluster);
        let format = "--format {{.Names}}/{{.ID}}";
        let listed = self.docker(&format!("ps {flag} --no-trunc {filter} {format}"));
        let mut listed: Vec<_> = listed.lines().map(str::to_owned).collect();
        listed.sort();
        listed
    }

    /// Kills the container whose name begins with `name`.
    pub fn kill(&self, name: &str) {
        let running = self.running();
        let found = running.iter().find(|found| found.starts_with(name));
        let found = found.unwrap_or_else(|| panic!("no {name} in {running:?}"));
        let id = found.split('/').nth(1).expect("a name and an id");
        self.docker(&format!("kill {id}"));
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = Command::new(program("node-agent").expect("it is beside the test"))
            .args([
                "sweep",
                "--runtime=docker",
                "--docker-cluster",
                &self.cluster,
            ])
            .status();
    }
}

/// Builds the image, which no registry has, unless it exists.
fn known_image() {
    let known = Command::new("docker")
        .args(["image", "inspect", IMAGE])
        .output()
        .is_ok_and(|output| output.status.success());
    if !known {
        import(IMAGE, "");
    }
}

/// Builds an image; a unique mark keeps it from sharing layers with other images.
pub fn import(name: &str, mark: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let script = format!(
        "mkdir -p bin tmp && cp \"$(command -v busybox)\" bin/ && for applet in sh sleep cat echo env; do ln bin/busybox bin/$applet; done && \
         echo '{mark}' >mark && tar -c . | docker import -c 'CMD [\"sh\", \"-c\", \"trap exit TERM; sleep 1000000 & wait\"]' - {name}"
    );
    shell(folder.path(), &script);
}

pub fn shell(folder: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-ec", script])
        .current_dir(folder)
        .stdout(Stdio::null())
        .status();
    assert!(status.is_ok_and(|status| status.success()), "{script}");
}
