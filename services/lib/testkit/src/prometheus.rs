//! A real Prometheus, of its own for one test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::free_port;
use crate::freeze::freeze;

/// A running Prometheus; it ends with this value, and so does its data.
pub struct Prometheus {
    _dir: TempDir,
    process: Child,
    port: u16,
}

impl Prometheus {
    /// Returns whether it can be run on this machine.
    pub fn is_installed() -> bool {
        Command::new("prometheus").arg("--version").output().is_ok()
    }

    /// Starts one on a free port of the loopback that scrapes these addresses each second, by job. It may not serve
    /// yet. Labels of a target's own series win over those of the target.
    ///
    /// # Panics
    /// When there is no `prometheus` to be run.
    pub fn start(jobs: &BTreeMap<String, Vec<String>>) -> Self {
        Self::start_with(jobs, "")
    }

    /// Starts one like [`Self::start`] that scrapes over TLS, with the files `ca.crt`, `tls.crt` and `tls.key` of a
    /// directory.
    ///
    /// # Panics
    /// When there is no `prometheus` to be run.
    pub fn start_over_tls(jobs: &BTreeMap<String, Vec<String>>, identity: &Path) -> Self {
        let file = |name| identity.join(name).display().to_string();
        let [ca, certificate, key] = ["ca.crt", "tls.crt", "tls.key"].map(file);
        let tls = format!("{{ ca_file: {ca:?}, cert_file: {certificate:?}, key_file: {key:?} }}");
        Self::start_with(jobs, &format!("  scheme: https\n  tls_config: {tls}\n"))
    }

    fn start_with(jobs: &BTreeMap<String, Vec<String>>, transport: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder can be made");
        let file = dir.path().join("prometheus.yml");
        std::fs::write(&file, config(jobs, transport)).expect("it is writable");
        let port = free_port();
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.path().join("tsdb").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus is installed");
        Self {
            _dir: dir,
            process,
            port,
        }
    }

    /// Returns its address, `<host>:<port>`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Stops it: connections stay open, and it answers nothing.
    pub fn freeze(&self) {
        freeze(&self.process);
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        // It may have ended before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the settings; `transport` are lines of each job.
fn config(jobs: &BTreeMap<String, Vec<String>>, transport: &str) -> String {
    let mut config =
        "global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n".to_owned();
    for (job, addresses) in jobs {
        let targets = format!("static_configs: [{{ targets: {addresses:?} }}]");
        writeln!(
            config,
            "- job_name: {job}\n  honor_labels: true\n{transport}  {targets}"
        )
        .unwrap();
    }
    config
}
