//! The commands that drive the cluster under test: the stock kubectl and `setpoint`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use setpoint_ctl::launcher::program;

use crate::Cluster;

/// kubectl with the cluster's kubeconfig and a cache of its own.
#[derive(Clone)]
pub struct Kubectl {
    program: PathBuf,
    directory: PathBuf,
    server: Option<String>,
}

/// The result of a command.
#[derive(Debug)]
pub struct Output {
    /// Whether the exit code was 0.
    pub success: bool,
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Self {
        Self {
            success: output.status.success(),
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Kubectl {
    /// Uses the `kubeconfig` in `directory`, and a cache there. The environment variable `SETPOINT_KUBECTL` names
    /// another program than `kubectl`.
    pub fn new(directory: PathBuf) -> Self {
        let program = std::env::var_os("SETPOINT_KUBECTL").unwrap_or_else(|| "kubectl".into());
        Self {
            program: program.into(),
            directory,
            server: None,
        }
    }

    /// Returns a copy that runs another kubectl, with a cache of its own.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Returns a copy that uses the gateway at `url`.
    #[must_use]
    pub fn at(mut self, url: &str) -> Self {
        self.server = Some(url.to_owned());
        self
    }

    /// Returns the command without running it, for long-running ones such as `get -w`.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        let cache = self
            .program
            .file_name()
            .map(|name| Path::new("cache").join(name));
        command
            // It lives for a moment: so it takes a third less CPU.
            .envs([("GOGC", "off"), ("GOMAXPROCS", "1")])
            .env("KUBECONFIG", self.directory.join("kubeconfig"))
            .arg("--cache-dir")
            .arg(self.directory.join(cache.unwrap_or_default()))
            .args(self.server.iter().flat_map(|url| ["--server", url]))
            .args(arguments.split_whitespace())
            .stdin(Stdio::null());
        command
    }

    /// Runs kubectl; `arguments` are split at whitespace.
    pub fn run(&self, arguments: &str) -> Output {
        let output = self
            .command(arguments)
            .output()
            .expect("kubectl is installed");
        Output::from(output)
    }

    /// Runs kubectl with `-f` and a file that contains `manifest`.
    pub fn with(&self, arguments: &str, manifest: &str) -> Output {
        let file = tempfile::Builder::new()
            .suffix(".yaml")
            .tempfile_in(&self.directory);
        let file = file.expect("a temporary file");
        std::fs::write(file.path(), manifest).expect("it is writable");
        self.run(&format!("{arguments} -f {}", file.path().display()))
    }

    /// Runs kubectl and returns its standard output.
    ///
    /// # Panics
    /// If it fails.
    pub fn ok(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            output.success,
            "kubectl {arguments}: {}{}",
            output.stdout, output.stderr
        );
        output.stdout
    }

    /// Runs kubectl with a request that must fail, and returns its standard error.
    ///
    /// # Panics
    /// If it succeeds.
    pub fn fails(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            !output.success,
            "kubectl {arguments} succeeded: {}",
            output.stdout
        );
        output.stderr
    }

    /// Runs kubectl with `-o json` and parses its output.
    pub fn json(&self, arguments: &str) -> Value {
        let text = self.ok(&format!("{arguments} -o json"));
        serde_json::from_str(&text).expect("kubectl writes JSON")
    }
}

impl Cluster {
    /// Runs the `setpoint` command against `gateway-<n>`; `arguments` are split at whitespace.
    pub fn setpoint_at(&self, gateway: usize, arguments: &str) -> Output {
        let output = Command::new(program("setpoint").expect("build the workspace first"))
            .arg("--state")
            .arg(self.directory())
            .args(["--gateway", &self.gateway_url_at(gateway)])
            .args(arguments.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .expect("it was built");
        Output::from(output)
    }

    /// Runs the `setpoint` command with `-o json` and parses its output.
    ///
    /// # Errors
    /// The output, if it fails or is not JSON.
    pub fn setpoint_json(&self, gateway: usize, arguments: &str) -> Result<Value, String> {
        let output = self.setpoint_at(gateway, &format!("{arguments} -o json"));
        match serde_json::from_str(&output.stdout) {
            Ok(answer) if output.success => Ok(answer),
            _ => Err(format!("{}{}", output.stdout, output.stderr)),
        }
    }
}
