//! Fixtures for the cri runtime: a containerd of each test, with its own directories, socket and network of Pods.
//! Tests are skipped with a message where none can run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use setpoint_runtime::Runtime as _;
use setpoint_runtime::contract::{Fixture, IMAGE, POLL_INTERVAL, TIMEOUT, Woken, uid};
use setpoint_runtime::cri::{Cri, Service, Settings, sweep};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::docker::fixture::files;

/// The program; another one can be tested by this variable.
const PROGRAM: &str = "containerd";
const VARIABLE: &str = "SETPOINT_TEST_CONTAINERD";
/// The CNI plug-ins of Debian.
const PLUGINS: &str = "/usr/lib/cni";

/// A containerd, which ends when dropped, with all that it runs.
pub struct Containerd {
    process: Child,
    folder: TempDir,
    bridge: String,
}

impl Containerd {
    /// Starts one, with the test image; `None` if it cannot run here.
    pub async fn start() -> Option<Self> {
        if let Some(missing) = missing() {
            eprintln!("SKIPPED: no containerd can be started: {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let number = std::process::id();
        let bridge = format!("sptest{}", number % 1_000_000);
        network(folder.path(), &bridge, number);
        let process = spawn(folder.path());
        let containerd = Self {
            process,
            folder,
            bridge,
        };
        containerd.import().await;
        Some(containerd)
    }

    /// Returns the settings of a runtime on it.
    pub fn settings(&self) -> Settings {
        Settings {
            endpoint: format!("unix://{}", self.socket().display()),
            pod_logs_dir: self.folder.path().join("logs"),
            relist_period: Duration::from_millis(50),
            ..Settings::default()
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("c.sock")
    }

    /// Returns the directory of the files of an agent.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// Removes the configuration of the network.
    pub fn remove_network(&self) {
        fs::remove_file(self.folder.path().join("cni/10-pods.conflist")).unwrap();
    }

    /// Kills it, as a machine does that is short of memory. Containers go on.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again.
    pub fn restart(&mut self) {
        self.process = spawn(self.folder.path());
    }

    /// Runs `ctr` in the namespace of Kubernetes.
    pub fn ctr(&self, words: &[&str]) -> std::process::Output {
        let mut ctr = Command::new("ctr");
        ctr.arg("-a")
            .arg(self.socket())
            .args(["-n", "k8s.io"])
            .args(words);
        ctr.output().unwrap()
    }

    async fn import(&self) {
        let archive = self.folder.path().join("image.tar");
        fs::write(&archive, image()).unwrap();
        let archive = archive.display().to_string();
        let imported = async {
            loop {
                let import = self.ctr(&["images", "import", &archive]);
                if import.status.success() {
                    return;
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        timeout(TIMEOUT, imported)
            .await
            .expect("containerd imports the image");
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let (settings, node) = (self.settings(), uid());
        let swept = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let _ = runtime.block_on(sweep(&settings, &node));
        });
        let _ = swept.join();
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = Command::new("ip")
            .args(["link", "delete", &self.bridge])
            .output();
    }
}

/// Returns what a containerd needs and this machine lacks.
fn missing() -> Option<String> {
    if !nix::unistd::Uid::effective().is_root() {
        return Some("it takes root".into());
    }
    let program = program();
    let needed = [program.as_str(), "runc", "ctr", "ip"].into_iter();
    let finds = |name: &str| {
        let found = Command::new("sh")
            .args(["-c", &format!("command -v {name}")])
            .output();
        found.is_ok_and(|found| found.status.success())
    };
    let mut missing = needed.filter(|name| !finds(name));
    match (missing.next(), Path::new(PLUGINS).join("bridge").exists()) {
        (Some(name), _) => Some(format!("{name} is not installed; see tests/prepare")),
        (None, false) => {
            Some("containernetworking-plugins is not installed; see tests/prepare".into())
        }
        _ => None,
    }
}

fn program() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| PROGRAM.into())
}

/// Writes the configuration of a network of this test's own.
fn network(folder: &Path, bridge: &str, number: u32) {
    let (high, low) = (128 + number / 250 % 120, number % 250);
    let subnet = format!("10.{high}.{low}.0/24");
    let list = serde_json::json!({
        "cniVersion": "0.4.0",
        "name": bridge,
        "plugins": [
            {
                "type": "bridge",
                "bridge": bridge,
                "isGateway": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": folder.join("ipam"),
                    "ranges": [[{ "subnet": subnet }]],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    });
    fs::create_dir(folder.join("cni")).unwrap();
    fs::write(folder.join("cni/10-pods.conflist"), list.to_string()).unwrap();
}

fn spawn(folder: &Path) -> Child {
    let config = folder.join("config.toml");
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        r#"version = 2
root = "{root}"
state = "{state}"
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/{IMAGE}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{cni}"
"#,
        root = at("root"),
        state = at("state"),
        socket = at("c.sock"),
        opt = at("opt"),
        cni = at("cni"),
    );
    fs::write(&config, text).unwrap();
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(at("log"))
        .unwrap();
    let mut containerd = Command::new(program());
    containerd
        .arg("--config")
        .arg(config)
        .args(["--log-level", "warn"]);
    containerd
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    containerd.spawn().unwrap()
}

/// Returns the test image as an archive of the Docker engine's format.
fn image() -> Vec<u8> {
    let layer = files("").into_inner().unwrap();
    let config = serde_json::json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/bin:/bin"],
            "Cmd": ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"],
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
    });
    let manifest = serde_json::json!([{
        "Config": "config.json",
        "RepoTags": [IMAGE],
        "Layers": ["layer.tar"],
    }]);
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in [
        ("config.json", config.to_string().into_bytes()),
        ("layer.tar", layer),
        ("manifest.json", manifest.to_string().into_bytes()),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len().try_into().unwrap());
        archive
            .append_data(&mut header, name, content.as_slice())
            .unwrap();
    }
    archive.into_inner().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let sum = Command::new("sha256sum").arg(file.path()).output().unwrap();
    let text = String::from_utf8(sum.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

/// Opens a runtime on a containerd, for the node of this test.
pub async fn open(containerd: &Containerd, woken: &Woken) -> Cri {
    let settings = containerd.settings();
    let service = Service::connect(&settings).await.unwrap();
    let (state, node) = (containerd.state(), uid());
    let runtime = Cri::open(service, &settings, &node, &state, woken.wake(), |_| {}).await;
    let runtime = runtime.unwrap();
    let ready = async {
        while runtime.images().await.is_empty() || runtime.network_ready().is_err() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, ready).await.expect("containerd is ready");
    runtime
}

pub async fn fixture() -> Option<Fixture<Cri>> {
    let containerd = Containerd::start().await?;
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    Some(Fixture::new(runtime, crate::MACHINE, woken, containerd))
}
