//! A real etcd, of its own for one test, that can be killed, frozen and brought back.

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

/// A running etcd; it ends with this value, and so does its data.
pub struct Etcd {
    dir: TempDir,
    client: u16,
    peer: u16,
    process: Child,
}

impl Etcd {
    /// An empty etcd on free ports of the loopback.
    ///
    /// # Panics
    /// When there is no `etcd` to be run, or it does not come up.
    pub async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let (client, peer) = (free_port(), free_port());
        let process = spawn(&dir, client, peer);
        let mut etcd = Self {
            dir,
            client,
            peer,
            process,
        };
        etcd.wait_until_it_serves().await;
        etcd
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        url(self.client)
    }

    /// Ends it at once, as a power cut would.
    pub fn kill(&mut self) {
        self.process.kill().expect("it is a child of this process");
        self.process.wait().expect("it is a child of this process");
    }

    /// Brings it back on the same port with its data.
    pub async fn restart(&mut self) {
        self.process = spawn(&self.dir, self.client, self.peer);
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
        while !healthy(self.client).await {
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

fn spawn(dir: &TempDir, client: u16, peer: u16) -> Child {
    let (client, peer) = (url(client), url(peer));
    Command::new("etcd")
        .arg("--data-dir")
        .arg(dir.path())
        .args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ])
        .args(["--initial-cluster", &format!("default={peer}")])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("etcd is installed")
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
