//! A registry of images on this machine: Debian's docker-registry, with one image in it that the engine does not have.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use setpoint_tests::{eventually, free_port};
use tempfile::TempDir;

use crate::engine::{Engine, import};

/// Ends the registry, and removes from the engine what came from it, when dropped.
pub struct Registry {
    /// What it has.
    pub image: String,
    process: Child,
    _folder: TempDir,
}

impl Registry {
    /// `None`, and a word about it, where the package is not installed.
    pub fn start(engine: &Engine) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address = format!("127.0.0.1:{}", free_port());
        let config = folder.path().join("config.yml");
        let root = folder.path().display();
        let settings = format!(
            "version: 0.1\nstorage: {{filesystem: {{rootdirectory: {root}}}}}\nhttp: {{addr: '{address}'}}\n"
        );
        std::fs::write(&config, settings).expect("the folder is writable");
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
            image: format!("{address}/setpoint-test/pulled:1"),
            process,
            _folder: folder,
        };
        eventually("the registry answers", || {
            TcpStream::connect(&address).map_err(|error| error.to_string())
        });
        registry.fill(engine);
        Some(registry)
    }

    fn fill(&self, engine: &Engine) {
        import(&self.image, &self.image);
        engine.docker(&format!("push {}", self.image));
        engine.docker(&format!("rmi {}", self.image));
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = Command::new("docker")
            .args(["rmi", "-f", &self.image])
            .output();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
