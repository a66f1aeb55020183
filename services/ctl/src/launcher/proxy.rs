//! The proxy, which makes Services carry traffic on this machine: whether one may run, its process, and the removal of
//! what it has programmed.
//!
//! Its table of nftables is that of the machine, and outlives its process. `/run/setpoint/<table>` has the state
//! directory of the cluster that a table belongs to, so that `up` of another cluster can tell whether that one still
//! runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fs, io};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::joined::{Joined, PodNetwork};
use super::launch::program;
use super::network::RECORDS;
use super::process::RunningProcess;
use super::state_dir::StateDir;

/// The service.
pub const PROXY: &str = "proxy";
/// The start of the names of tables.
const PREFIX: &str = "setpoint-";

/// The ways to make Services carry traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// With nftables if this machine allows it, else through sockets of the proxy
    #[default]
    Auto,
    /// With nftables, or not at all
    Nftables,
    /// Through sockets of the proxy, which needs no rights but for ports below 1024
    Userspace,
    /// Services carry no traffic
    None,
}

/// The way in which Services carry traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// They carry none.
    None,
    /// By a table of nftables.
    Nftables,
    /// Through sockets of the proxy.
    Userspace,
}

/// Returns the way in which Services are to carry traffic; says so if it is not nftables in the mode [`Mode::Auto`].
///
/// # Errors
/// If nftables cannot be used in the mode [`Mode::Nftables`].
pub fn decide(state_dir: &StateDir, mode: Mode) -> anyhow::Result<Traffic> {
    let obstacle = match mode {
        Mode::None => return Ok(Traffic::None),
        Mode::Userspace => return Ok(Traffic::Userspace),
        Mode::Auto | Mode::Nftables => obstacle(state_dir),
    };
    match obstacle {
        None => Ok(Traffic::Nftables),
        Some(why) if mode == Mode::Nftables => bail!("--proxy nftables: {why}"),
        Some(why) => {
            println!("Services will carry traffic through sockets of the proxy: {why}");
            Ok(Traffic::Userspace)
        }
    }
}

/// Returns why nftables cannot be used, in one line; removes tables of clusters that do not run.
fn obstacle(state_dir: &StateDir) -> Option<String> {
    let output = match Command::new("nft").args(["list", "tables", "ip"]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(
                "nft is not installed (Debian and Ubuntu: apt-get install nftables)".into(),
            );
        }
        Err(error) => return Some(format!("nft does not start: {error}")),
    };
    if !output.status.success() {
        return Some("nftables needs root, with the capability NET_ADMIN".to_owned());
    }
    let own = table(state_dir);
    let tables = String::from_utf8_lossy(&output.stdout).into_owned();
    let tables = tables
        .lines()
        .filter_map(|line| line.strip_prefix("table ip "));
    let mut others = tables.filter(|table| *table != own && record(table).exists());
    others.find_map(|table| remove_stale(table).err())
}

/// Removes the table of another cluster unless that runs.
///
/// # Errors
/// If the table cannot be removed.
fn remove_stale(table: &str) -> Result<(), String> {
    let owner = fs::read_to_string(record(table)).unwrap_or_default();
    let owner = owner.trim();
    let other = StateDir::find(Path::new(owner), Some(PathBuf::from(owner)));
    let mut recorded = other.recorded().into_iter();
    match recorded.any(|name| RunningProcess::find(&other, &name).is_some()) {
        true => Ok(()),
        false => remove(table).map_err(|error| format!("{error:#}")),
    }
}

/// Returns the name of the cluster's table.
pub fn table(state_dir: &StateDir) -> String {
    let path = state_dir.state().display().to_string();
    let digest = Sha256::digest(path.as_bytes());
    let id: String = digest
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{PREFIX}{id}")
}

fn record(table: &str) -> PathBuf {
    Path::new(RECORDS).join(table)
}

/// Records the cluster's table, before it is made.
pub fn remember(state_dir: &StateDir) -> anyhow::Result<()> {
    let path = record(&table(state_dir));
    let written = fs::create_dir_all(RECORDS)
        .and_then(|()| fs::write(&path, format!("{}\n", state_dir.state().display())));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Removes the cluster's table, if it has one.
pub fn forget(state_dir: &StateDir) -> anyhow::Result<()> {
    let table = table(state_dir);
    match record(&table).exists() {
        true => remove(&table),
        false => Ok(()),
    }
}

/// Removes the routes to the Pods of other machines that proxies of nodes have made.
pub fn forget_routes(state_dir: &StateDir) -> anyhow::Result<()> {
    for joined in Joined::all(state_dir) {
        let network = joined
            .network
            .filter(|network| network.pods == PodNetwork::Routes);
        let Some(network) = network else {
            continue;
        };
        clean_up("--cleanup-routes", &network.cluster.pod_range.to_string())?;
    }
    Ok(())
}

fn remove(table: &str) -> anyhow::Result<()> {
    clean_up("--cleanup", table)?;
    match fs::remove_file(record(table)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Has the proxy remove what it has left.
fn clean_up(flag: &str, what: &str) -> anyhow::Result<()> {
    let removed = Command::new(program(PROXY)?).args([flag, what]).output();
    let Output { status, stderr, .. } = removed.context("cannot run the proxy")?;
    if !status.success() {
        bail!("{}", String::from_utf8_lossy(&stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_directory_has_a_table_of_its_own() {
        let of = |path: &str| table(&StateDir::find(Path::new(path), None));
        assert_eq!(of("/one"), of("/one"));
        assert_ne!(of("/one"), of("/two"));
        assert!(of("/one").starts_with(PREFIX));
    }

    #[test]
    fn a_cluster_without_a_table_has_nothing_to_remove() {
        let root = tempfile::tempdir().unwrap();
        forget(&StateDir::find(root.path(), None)).unwrap();
    }

    #[test]
    fn without_a_proxy_nothing_is_looked_for() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        assert_eq!(decide(&state_dir, Mode::None).unwrap(), Traffic::None);
    }
}
