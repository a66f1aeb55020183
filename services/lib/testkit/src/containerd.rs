//! A containerd of a test's own, with its own directories, socket and network of Pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::busybox_image;

/// The program; another one can be tested by this variable.
const PROGRAM: &str = "containerd";
const VARIABLE: &str = "SETPOINT_TEST_CONTAINERD";
/// The CNI plug-ins of Debian.
const PLUGINS: &str = "/usr/lib/cni";
/// The name of a second handler, which RuntimeClasses can name.
pub const HANDLER: &str = "sandboxed";
/// The configuration of the network of Pods.
const NETWORK: &str = "cni/10-pods.conflist";
/// The time limit of the start, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A containerd, which ends when dropped. The containers that it runs are to be removed before.
pub struct Containerd {
    process: Child,
    folder: TempDir,
    bridge: String,
    sandbox_image: String,
}

impl Containerd {
    /// Starts one, whose sandboxes run this image, which [`Self::import`] must be given. `None`, with a message, where
    /// none can run.
    pub fn start(sandbox_image: &str) -> Option<Self> {
        if let Some(missing) = missing() {
            eprintln!("SKIPPED: no containerd can be started: {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let bridge = format!("sptest{}", std::process::id() % 1_000_000);
        fs::create_dir(folder.path().join("cni")).unwrap();
        let containerd = Self {
            process: spawn(folder.path(), sandbox_image),
            folder,
            bridge,
            sandbox_image: sandbox_image.to_owned(),
        };
        containerd.add_network();
        containerd.wait_until_it_answers();
        Some(containerd)
    }

    /// Returns its directory, in which a test may have its own files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("c.sock")
    }

    /// Returns its socket as settings name it.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Writes the configuration of its network.
    pub fn add_network(&self) {
        let list = network(self.folder.path(), &self.bridge);
        fs::write(self.folder.path().join(NETWORK), list).unwrap();
    }

    /// Removes the configuration of its network.
    pub fn remove_network(&self) {
        fs::remove_file(self.folder.path().join(NETWORK)).unwrap();
    }

    /// Kills it, as a machine does that is short of memory. Containers go on.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again, without waiting for it.
    pub fn restart(&mut self) {
        self.process = spawn(self.folder.path(), &self.sandbox_image);
    }

    /// Runs `ctr` in the namespace of Kubernetes.
    pub fn ctr(&self, words: &[&str]) -> Output {
        let mut ctr = Command::new("ctr");
        ctr.arg("-a")
            .arg(self.socket())
            .args(["-n", "k8s.io"])
            .args(words);
        ctr.output().unwrap()
    }

    /// Imports an image in the format of `docker save`.
    pub fn import(&self, archive: &[u8]) {
        let path = self.folder.path().join("image.tar");
        fs::write(&path, archive).unwrap();
        let imported = self.ctr(&["images", "import", &path.display().to_string()]);
        let error = String::from_utf8_lossy(&imported.stderr);
        assert!(imported.status.success(), "{error}");
        fs::remove_file(path).unwrap();
    }

    /// Pushes an image of its own to a registry of this machine, as this user, and removes it here.
    pub fn push(&self, image: &str, (user, password): (&str, &str)) {
        self.import(&busybox_image(image, image));
        let user = format!("{user}:{password}");
        for words in [
            ["images", "push", "--plain-http", "--user", &user, image].as_slice(),
            &["images", "remove", "--sync", image],
        ] {
            let done = self.ctr(words);
            let error = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{error}");
        }
    }

    fn wait_until_it_answers(&self) {
        let start = Instant::now();
        while !self.ctr(&["images", "list", "-q"]).status.success() {
            assert!(start.elapsed() < START_TIMEOUT, "containerd answers");
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
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

/// Returns the configuration of a network of this test's own.
fn network(folder: &Path, bridge: &str) -> String {
    let number = std::process::id();
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
    list.to_string()
}

fn spawn(folder: &Path, sandbox_image: &str) -> Child {
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
sandbox_image = "docker.io/{sandbox_image}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{HANDLER}]
runtime_type = "io.containerd.runc.v2"
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
