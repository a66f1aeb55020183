//! Measures the cost of audit, priority and fairness, and encryption at rest together: the same work on two clusters in
//! turn, of which one has none of them.

use std::fs;
use std::path::Path;

use setpoint_tests::Cluster;
use tempfile::TempDir;

use crate::pairs::{Results, SIZE};
use crate::report::Report;

/// Records who did what, without bodies.
const POLICY: &str = "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}";
/// Encrypts every kind with AES-GCM.
const ENCRYPTION: &str = "{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: \
    [{resources: ['*.*'], providers: [{aesgcm: {keys: [{name: a, secret: \
    MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}]}}]}]}";

/// Reports both rates of each workload and their ratio.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let directory = TempDir::new()?;
    let file = |name: &str, text: &str| write(directory.path(), name, text);
    let policy = file("policy.yaml", POLICY)?;
    let encryption = file("encryption.yaml", ENCRYPTION)?;
    let log = directory.path().join("audit.log").display().to_string();
    let protected = [
        ["--audit-policy-file", &policy],
        ["--audit-log-path", &log],
        ["--encryption-provider-config", &encryption],
    ];
    let pair = || {
        [
            Cluster::with_gateway_flags(SIZE, &["--enable-priority-and-fairness=false"]),
            Cluster::with_gateway_flags(SIZE, &protected.concat()),
        ]
    };
    let results = Results::measure(pair, seconds / 4.0).await?;
    anyhow::ensure!(fs::metadata(&log)?.len() > 0, "nothing was recorded");
    results.report(
        ["none", "audit, fairness, encryption"],
        "with ÷ without",
        report,
    );
    Ok(())
}

/// Writes a file, and returns its path.
fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}
