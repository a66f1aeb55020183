//! A registry of images on this machine: Debian's docker-registry, on a port of its own and with nothing in it.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::free_port;

/// The only user of a registry that has one, and the password.
pub const REGISTRY_USER: (&str, &str) = ("puller", "hush-hush");
/// Its line in the file of users: the hash of the password, by bcrypt.
const USERS: &str = "puller:$2b$05$abcdefghijklmnopqrstuu4uoW5CdSDmY8cLkib7pLDRBlvRVo8Pe\n";
/// The time limit of the start, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Ends the registry, and removes from the engine what came from it, when dropped.
pub struct ImageRegistry {
    address: String,
    process: Child,
    folder: TempDir,
    /// The certificate of one over TLS, which is its own authority.
    certificate: Option<PathBuf>,
}

/// The protocol and the credentials of the clients of a registry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Anyone, over HTTP.
    Open,
    /// [`REGISTRY_USER`], over HTTP.
    Guarded,
    /// Anyone, over TLS.
    Tls,
}

impl ImageRegistry {
    /// `None`, and a word about it, where the package is not installed.
    pub fn start() -> Option<Self> {
        Self::start_with(Access::Open)
    }

    /// As [`Self::start`], with [`REGISTRY_USER`] as the only one who may push and pull.
    pub fn guarded() -> Option<Self> {
        Self::start_with(Access::Guarded)
    }

    /// As [`Self::start`], over TLS, with a certificate that nobody knows.
    pub fn with_unknown_certificate() -> Option<Self> {
        Self::start_with(Access::Tls)
    }

    fn start_with(access: Access) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let config = folder.path().join("config.yml");
        let root = folder.path().display();
        let mut settings = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {root}}}}}\nhttp:\n  addr: '{address}'\n"
        );
        let certificate = (access == Access::Tls).then(|| write_certificate(folder.path()));
        if access == Access::Tls {
            settings += &format!("  tls: {{certificate: {root}/tls.crt, key: {root}/tls.key}}\n");
        }
        if access == Access::Guarded {
            std::fs::write(folder.path().join("users"), USERS).unwrap();
            settings += &format!("auth: {{htpasswd: {{realm: test, path: {root}/users}}}}\n");
        }
        std::fs::write(&config, settings).unwrap();
        let process = Command::new("docker-registry")
            .arg("serve")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            eprintln!("SKIPPED: docker-registry is not installed; see tests/prepare");
            return None;
        };
        let registry = Self {
            address,
            process,
            folder,
            certificate,
        };
        registry.wait_until_it_answers();
        Some(registry)
    }

    /// The name of an image of this registry, without a tag.
    pub fn name(&self, image: &str) -> String {
        format!("{}/setpoint-test/{image}", self.address)
    }

    /// Returns its host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the path of its certificate, if it is over TLS.
    pub fn certificate(&self) -> Option<&Path> {
        self.certificate.as_deref()
    }

    /// Changes the content of the largest layer, whose digest stays the same. A second call changes it back.
    pub fn damage(&self) {
        let find =
            r#"find "$1" -path '*/blobs/*' -name data -printf '%s %p\n' | sort -n | tail -1"#;
        let found = Command::new("sh")
            .args(["-c", find, "sh"])
            .arg(self.folder.path())
            .output();
        let found = String::from_utf8(found.unwrap().stdout).unwrap();
        let (_, path) = found.trim().split_once(' ').expect("an image was pushed");
        let mut content = std::fs::read(path).unwrap();
        content.iter_mut().for_each(|byte| *byte = !*byte);
        std::fs::write(path, content).unwrap();
    }

    /// Removes the images of the registry from the engine.
    pub fn forget(&self) -> bool {
        let script = format!(
            "docker images --filter reference='{}/*/*' --format '{{{{.Repository}}}}:{{{{.Tag}}}}' | xargs -r docker rmi -f",
            self.address
        );
        let forgotten = Command::new("sh").args(["-c", &script]).output();
        forgotten.is_ok_and(|output| output.status.success())
    }

    fn wait_until_it_answers(&self) {
        let start = Instant::now();
        while TcpStream::connect(&self.address).is_err() {
            assert!(start.elapsed() < START_TIMEOUT, "the registry answers");
            sleep(Duration::from_millis(20));
        }
    }
}

/// Writes a certificate that is its own authority, with its key. Returns its path.
fn write_certificate(folder: &Path) -> PathBuf {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let path = folder.join("tls.crt");
    std::fs::write(&path, certificate.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    path
}

impl Drop for ImageRegistry {
    fn drop(&mut self) {
        self.forget();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
