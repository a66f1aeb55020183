//! The stock kubectl, pointed at the cluster under test.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

/// kubectl with the cluster's kubeconfig and a cache of its own.
#[derive(Clone)]
pub struct Kubectl {
    folder: PathBuf,
    server: Option<String>,
}

/// What kubectl said.
#[derive(Debug)]
pub struct Output {
    /// Did it exit with 0?
    pub success: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Kubectl {
    /// `folder` holds the `kubeconfig`.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            server: None,
        }
    }

    /// The same, but by this gateway.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        self.server = Some(url.to_owned());
        self
    }

    /// The command itself, for what is not over at once (`get -w`).
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.folder.join("cache"))
            .args(self.server.iter().flat_map(|url| ["--server", url]))
            .args(arguments.split_whitespace())
            .stdin(Stdio::null());
        command
    }

    /// Runs kubectl; `arguments` are split at white space.
    pub fn run(&self, arguments: &str) -> Output {
        let output = self
            .command(arguments)
            .output()
            .expect("kubectl is installed");
        Output {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Runs kubectl on a manifest.
    pub fn with(&self, arguments: &str, manifest: &str) -> Output {
        let file = tempfile::Builder::new()
            .suffix(".yaml")
            .tempfile_in(&self.folder);
        let file = file.expect("a temporary file");
        std::fs::write(file.path(), manifest).expect("it is writable");
        self.run(&format!("{arguments} -f {}", file.path().display()))
    }

    /// Runs kubectl and answers its output.
    ///
    /// # Panics
    /// When it fails.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            output.success,
            "kubectl {arguments}: {}{}",
            output.stdout, output.stderr
        );
        output.stdout
    }

    /// Runs kubectl and answers what it says of a request that must fail.
    ///
    /// # Panics
    /// When it succeeds.
    pub fn fails(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            !output.success,
            "kubectl {arguments} succeeded: {}",
            output.stdout
        );
        output.stderr
    }

    /// An object, or a list of them, as JSON.
    pub fn json(&self, arguments: &str) -> Value {
        let text = self.ok(&format!("{arguments} -o json"));
        serde_json::from_str(&text).expect("kubectl writes JSON")
    }
}
