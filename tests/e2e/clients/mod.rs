//! Unmodified clients: kubectl with each of its commands, the Python client, kube, helm, and grpcurl.

mod grpcurl;
mod helm;
mod helm_user;
mod kube;
mod kubectl_answers;
mod kubectl_auth;
mod kubectl_custom;
mod kubectl_login;
mod kubectl_pod_security;
mod kubectl_policies;
mod kubectl_reads;
mod kubectl_streams;
mod kubectl_workloads;
mod kubectl_writes;
mod python;
mod transcript;

use std::env::current_exe;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the trimmed lines of a table with single spaces.
fn folded(table: &str) -> Vec<String> {
    let fold = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    table.lines().map(fold).collect()
}

/// Runs a command with the cluster's kubeconfig, and returns its standard output.
///
/// # Panics
/// If it fails.
fn succeed(command: &mut Command, directory: &Path) -> String {
    let command = command.env("KUBECONFIG", directory.join("kubeconfig"));
    let output = command.output().expect("the program is installed");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stdout}{stderr}");
    stdout
}

/// Returns the path of a program that `tests/prepare` installs from PyPI; `None`, with a notice, if it is missing.
pub fn client(program: &str) -> Option<PathBuf> {
    let folder = current_exe().expect("a test has a path");
    let target = folder
        .ancestors()
        .nth(3)
        .expect("it is in target/debug/deps");
    let path = target.join("clients/bin").join(program);
    if path.exists() {
        return Some(path);
    }
    println!(
        "SKIPPED: no {}; tests/prepare installs it where PyPI can be reached",
        path.display()
    );
    None
}
