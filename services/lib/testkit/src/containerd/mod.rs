//! A containerd of a test's own, with its own directories, socket and network of Pods.

mod config;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use self::config::{network, program, spawn};
use crate::processes::process_ids_with;
use crate::{busybox_image, processes_with};

/// The CNI plug-ins of Debian, to which there is a link in the directory of a containerd.
const PLUGINS: &str = "/usr/lib/cni";
const OWN_PLUGINS: &str = "plugins";
/// The directory of what it knows about registries.
const REGISTRIES: &str = "registries";
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
    /// As [`Self::start`], with all that it keeps in a file system in memory of this size in MiB.
    pub fn start_on(sandbox_image: &str, mebibytes: u32) -> Option<Self> {
        Self::start_in(sandbox_image, |folder| {
            let root = folder.join("root");
            fs::create_dir(&root).unwrap();
            let options = format!("size={mebibytes}m");
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
            let mounted = mount.arg(root).status().unwrap();
            assert!(mounted.success(), "root may mount a file system");
        })
    }

    /// Starts one, whose sandboxes run this image, which [`Self::import`] must be given. `None`, with a message, where
    /// none can run.
    pub fn start(sandbox_image: &str) -> Option<Self> {
        Self::start_in(sandbox_image, |_| {})
    }

    fn start_in(sandbox_image: &str, prepare: impl FnOnce(&Path)) -> Option<Self> {
        if let Some(missing) = missing() {
            eprintln!("SKIPPED: no containerd can be started: {missing}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let bridge = format!("sptest{}", std::process::id() % 1_000_000);
        fs::create_dir(folder.path().join("cni")).unwrap();
        prepare(folder.path());
        let containerd = Self {
            process: spawn(folder.path(), sandbox_image),
            folder,
            bridge,
            sandbox_image: sandbox_image.to_owned(),
        };
        containerd.add_plugins();
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

    /// Returns the id of its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
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

    /// Lets it find the plug-ins of networks.
    pub fn add_plugins(&self) {
        symlink(PLUGINS, self.folder.path().join(OWN_PLUGINS)).unwrap();
    }

    /// Lets it find no plug-ins of networks.
    pub fn remove_plugins(&self) {
        fs::remove_file(self.folder.path().join(OWN_PLUGINS)).unwrap();
    }

    /// Takes all the space that it has for what it keeps.
    pub fn fill_disk(&self) {
        let mut ballast = fs::File::create(self.ballast()).unwrap();
        while ballast.write_all(&[0; 4096]).is_ok() {}
    }

    /// Gives that space back.
    pub fn free_disk(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    fn ballast(&self) -> PathBuf {
        self.folder.path().join("root/ballast")
    }

    /// Lets it reach a registry over TLS, by this certificate if it is to trust one.
    pub fn use_tls(&self, registry: &str, certificate: Option<&Path>) {
        let folder = self.folder.path().join(REGISTRIES).join(registry);
        fs::create_dir_all(&folder).unwrap();
        let trusted = certificate.map_or_else(String::new, |path| format!("ca = {path:?}\n"));
        let server = format!("https://{registry}");
        let hosts = format!(
            "server = {server:?}\n[host.{server:?}]\ncapabilities = [\"pull\", \"resolve\", \"push\"]\n{trusted}"
        );
        fs::write(folder.join("hosts.toml"), hosts).unwrap();
    }

    /// Returns the number of the processes that run its containers, of which each Pod has one.
    pub fn shims(&self) -> usize {
        processes_with(&self.socket().display().to_string())
    }

    /// Kills the processes that run its containers, and these once it starts again.
    pub fn kill_shims(&self) {
        for id in process_ids_with(&self.socket().display().to_string()) {
            let id = Pid::from_raw(id.try_into().unwrap());
            kill(id, Signal::SIGKILL).unwrap();
        }
    }

    /// Forgets the state of a container that it has recorded, as if it had been killed before it was written.
    pub fn forget_state(&self, container: &str) {
        let records = self.folder.path().join("root/io.containerd.grpc.v1.cri");
        let record = records.join("containers").join(container).join("status");
        fs::remove_file(record).unwrap();
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
        self.ctr_in("k8s.io", words)
    }

    fn ctr_in(&self, namespace: &str, words: &[&str]) -> Output {
        let mut ctr = Command::new("ctr");
        ctr.arg("-a")
            .arg(self.socket())
            .args(["-n", namespace])
            .args(words);
        ctr.output().unwrap()
    }

    /// Imports an image in the format of `docker save`.
    pub fn import(&self, archive: &[u8]) {
        self.import_into("k8s.io", archive);
    }

    fn import_into(&self, namespace: &str, archive: &[u8]) {
        let path = self.folder.path().join("image.tar");
        fs::write(&path, archive).unwrap();
        let words = ["images", "import", &path.display().to_string()];
        let imported = self.ctr_in(namespace, &words);
        let error = String::from_utf8_lossy(&imported.stderr);
        assert!(imported.status.success(), "{error}");
        fs::remove_file(path).unwrap();
    }

    /// Pushes an image of its own to a registry of this machine, as this user. The containerd does not keep it.
    pub fn push(&self, image: &str, (user, password): (&str, &str)) {
        let user = format!("{user}:{password}");
        self.push_with(image, &["--plain-http", "--user", &user]);
    }

    /// As [`Self::push`], as [`Self::use_tls`] says.
    pub fn push_over_tls(&self, image: &str) {
        let registries = self.folder.path().join(REGISTRIES);
        self.push_with(image, &["--hosts-dir", &registries.display().to_string()]);
    }

    fn push_with(&self, image: &str, flags: &[&str]) {
        // In that of Kubernetes, the image would also have its digest as a name, and so stay.
        let namespace = "push";
        self.import_into(namespace, &busybox_image(image, image));
        let push = [&["images", "push"], flags, &[image]].concat();
        for words in [push.as_slice(), &["images", "remove", "--sync", image]] {
            let done = self.ctr_in(namespace, words);
            let error = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{error}");
        }
    }

    /// Waits until it answers.
    pub fn wait_until_it_answers(&self) {
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
        unmount_below(self.folder.path());
    }
}

/// Unmounts what a containerd that was killed has left, so that its directory can be removed.
fn unmount_below(folder: &Path) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let below: Vec<_> = places
        .filter(|place| Path::new(place).starts_with(folder))
        .collect();
    for place in below.iter().rev() {
        let _ = Command::new("umount").args(["--lazy", place]).output();
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
