//! Measures the cost of audit, priority and fairness, and encryption at rest together: the same work on two clusters in
//! turn, of which one has none of them; and the cost of each alone.

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

/// A gateway without any of them: fairness is on by default.
const NONE: &str = "--enable-priority-and-fairness=false";

/// Reports both rates of each workload and their ratio, for all together and for each alone.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let directory = TempDir::new()?;
    let file = |name: &str, text: &str| write(directory.path(), name, text);
    let policy = file("policy.yaml", POLICY)?;
    let encryption = file("encryption.yaml", ENCRYPTION)?;
    let log = directory.path().join("audit.log").display().to_string();
    let audit = [
        "--audit-policy-file",
        policy.as_str(),
        "--audit-log-path",
        &log,
    ];
    let encryption = ["--encryption-provider-config", &encryption];
    let all = [&audit[..], &encryption].concat();
    compare("audit, fairness, encryption", &all, report, seconds).await?;
    let alone = [NONE, audit[0], audit[1], audit[2], audit[3]];
    compare("audit alone", &alone, report, seconds).await?;
    compare("fairness alone", &[], report, seconds).await?;
    let alone = [NONE, encryption[0], encryption[1]];
    compare("encryption alone", &alone, report, seconds).await?;
    anyhow::ensure!(fs::metadata(&log)?.len() > 0, "nothing was recorded");
    Ok(())
}

/// Compares a gateway with these flags to one with none of the three.
async fn compare(
    name: &str,
    flags: &[&str],
    report: &mut Report,
    seconds: f64,
) -> anyhow::Result<()> {
    let pair = || {
        [
            Cluster::with_gateway_flags(SIZE, &[NONE]),
            Cluster::with_gateway_flags(SIZE, flags),
        ]
    };
    let results = Results::measure(pair, seconds / 4.0).await?;
    let without = format!("none (beside {name})");
    let ratio = format!("{name} ÷ none");
    results.report([&without, name], &ratio, report);
    Ok(())
}

/// Writes a file, and returns its path.
fn write(directory: &Path, name: &str, text: &str) -> anyhow::Result<String> {
    let path = directory.join(name);
    fs::write(&path, text)?;
    Ok(path.display().to_string())
}
