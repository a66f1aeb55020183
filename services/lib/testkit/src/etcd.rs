//! A real etcd, of its own for one test, that can be killed, frozen and brought back.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::free_port;
use crate::freeze::{freeze, signal};

/// The time limit of the start, on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The files by which etcd serves and recognises its clients.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The CA of clients.
    pub ca: PathBuf,
    /// The certificate of etcd, which is used for connections to itself, too.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// A running etcd; it ends with this value, and so does its data.
pub struct Etcd {
    dir: TempDir,
    client: u16,
    peer: u16,
    /// The port of its health, which is that of clients without certificates.
    health: u16,
    certificates: Option<Certificates>,
    process: Child,
}

impl Etcd {
    /// An empty etcd on free ports of the loopback.
    ///
    /// # Panics
    /// When there is no `etcd` to be run, or it does not come up.
    pub async fn start() -> Self {
        let client = free_port();
        Self::start_on(client, client, None).await
    }

    /// An empty etcd that answers only clients with a certificate.
    ///
    /// # Panics
    /// When there is no `etcd` to be run, or it does not come up.
    pub async fn start_with(certificates: Certificates) -> Self {
        Self::start_on(free_port(), free_port(), Some(certificates)).await
    }

    async fn start_on(client: u16, health: u16, certificates: Option<Certificates>) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let peer = free_port();
        let mut etcd = Self {
            process: spawn(&dir, client, peer, health, certificates.as_ref()),
            dir,
            client,
            peer,
            health,
            certificates,
        };
        etcd.wait_until_it_serves().await;
        etcd
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        client_url(self.client, self.certificates.as_ref())
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is a child of this process");
        self.process.wait().expect("it is a child of this process");
    }

    /// Brings it back on the same port with its data.
    pub async fn restart(&mut self) {
        let certificates = self.certificates.as_ref();
        self.process = spawn(&self.dir, self.client, self.peer, self.health, certificates);
        self.wait_until_it_serves().await;
    }

    /// Brings it back on the same port without its data.
    pub async fn restart_empty(&mut self) {
        self.dir = tempfile::tempdir().expect("a temporary folder can be made");
        self.restart().await;
    }

    /// Stops it: connections stay open, and it answers nothing.
    pub fn freeze(&self) {
        freeze(&self.process);
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        signal(&self.process, Signal::SIGCONT);
    }

    async fn wait_until_it_serves(&mut self) {
        let deadline = Instant::now() + START_TIMEOUT;
        while !healthy(self.health).await {
            let ended = self
                .process
                .try_wait()
                .expect("it is a child of this process");
            assert_eq!(ended, None, "etcd has ended");
            assert!(Instant::now() < deadline, "etcd does not serve");
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(
    dir: &TempDir,
    client: u16,
    peer: u16,
    health: u16,
    certificates: Option<&Certificates>,
) -> Child {
    let (clients, peer) = (client_url(client, certificates), url(peer));
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(dir.path())
        .args([
            "--listen-client-urls",
            &clients,
            "--advertise-client-urls",
            &clients,
        ])
        .args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ])
        .args(["--initial-cluster", &format!("default={peer}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(certificates) = certificates {
        command
            .args(["--listen-metrics-urls", &url(health), "--client-cert-auth"])
            .arg("--trusted-ca-file")
            .arg(&certificates.ca)
            .arg("--cert-file")
            .arg(&certificates.certificate)
            .arg("--key-file")
            .arg(&certificates.key);
    }
    command.spawn().expect("etcd is installed")
}

/// Returns the URL of clients, who need TLS if there are certificates.
fn client_url(port: u16, certificates: Option<&Certificates>) -> String {
    match certificates {
        Some(_) => format!("https://127.0.0.1:{port}"),
        None => url(port),
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// It listens long before it serves; and one that is killed in between may never come back.
async fn healthy(port: u16) -> bool {
    let mut answer = String::new();
    let check = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n").await?;
        stream.read_to_string(&mut answer).await
    };
    // It does not answer at all before it has a leader.
    matches!(timeout(START_TIMEOUT, check).await, Ok(Ok(_)))
        && answer.contains(r#""health":"true""#)
}
