//! A registry of images on this machine: Debian's docker-registry, on a port of its own and with nothing in it.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::PushImageOptionsBuilder;
use futures::TryStreamExt as _;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{docker, uid};

/// Ends the registry, and removes from the engine what came from it, when dropped.
pub struct Registry {
    address: String,
    process: Child,
    _folder: TempDir,
}

impl Registry {
    /// `None`, and a word about it, where the package is not installed.
    pub async fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let config = folder.path().join("config.yml");
        let root = folder.path().display();
        let settings = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {root}}}}}\nhttp: {{addr: '{address}'}}\n"
        );
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
            _folder: folder,
        };
        registry.answers().await;
        Some(registry)
    }

    async fn answers(&self) {
        let answers = async {
            while TcpStream::connect(&self.address).await.is_err() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let answered = timeout(Duration::from_secs(20), answers).await;
        answered.expect("the registry answers");
    }

    /// An image that only the registry has.
    pub async fn image(&self, client: &Docker) -> String {
        let name = format!("{}/setpoint-test/{}", self.address, uid());
        docker::import(client, &name, "1", &uid()).await;
        let options = PushImageOptionsBuilder::default().tag("1").build();
        let pushed = client.push_image(&name, Some(options), None);
        pushed.try_collect::<Vec<_>>().await.unwrap();
        assert!(self.forget(), "the engine forgets {name}");
        format!("{name}:1")
    }

    /// Removes from the engine what is named after the registry.
    fn forget(&self) -> bool {
        let script = format!(
            "docker images --filter reference='{}/*/*' --format '{{{{.Repository}}}}:{{{{.Tag}}}}' | xargs -r docker rmi -f",
            self.address
        );
        let forgotten = Command::new("sh").args(["-c", &script]).output();
        forgotten.is_ok_and(|output| output.status.success())
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.forget();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
