//! The addresses of a local cluster, which no other cluster of the machine has.
//!
//! ```text
//!            Pods               nodes and gateways   Services
//! number n   10.(244-n).0.0/16  10.255.n.0/24        10.(96+n).0.0/16
//! loopback   127.(128+n).0.0/16 127.0.0.1            127.(96+n).0.0/16
//! ```
//! Without networks of Pods and without nftables, all addresses are those of the loopback, which need no right.
//!
//! A cluster takes the first number whose ranges are free when it starts for the first time, and keeps it.
//! `/run/setpoint/network-<n>` has the state directory of the cluster with the number n; without root, a directory for
//! temporary files has it.

mod addresses;
pub mod bridge;
mod free;
mod overlap;

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::Uid;
use setpoint_host::private;

use super::proxy::Traffic;
use super::state_dir::StateDir;

use free::free;

pub use addresses::{Kind, Network};
pub use overlap::check as check_overlap;

/// The directory of the records of clusters of root, which a restart of the machine empties, as it does links and
/// tables.
pub const RECORDS: &str = "/run/setpoint";
/// The number of clusters that a machine can have.
const NUMBERS: u8 = 8;
/// The network of Pods that are processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A bridge if this machine allows it, else the machine's
    #[default]
    Auto,
    /// A bridge of the cluster: each Pod has a network and an address of its own
    Bridge,
    /// The machine's: Pods share its ports, at addresses of the loopback
    Host,
}

impl Network {
    fn record(self) -> PathBuf {
        records().join(format!("network-{}", self.number))
    }

    /// Returns the network of a cluster that has been started before.
    ///
    /// # Errors
    /// If its file is damaged.
    pub fn load(state_dir: &StateDir) -> anyhow::Result<Option<Self>> {
        let path = file(state_dir);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => {
                let read = read.with_context(|| format!("cannot read {}", path.display()))?;
                let network = serde_json::from_slice(&read);
                Ok(Some(network.with_context(|| {
                    format!("{} is damaged", path.display())
                })?))
            }
        }
    }

    /// Removes what the cluster has made on the machine, if anything. Its addresses stay its own.
    ///
    /// # Errors
    /// If something cannot be removed.
    pub fn forget(state_dir: &StateDir) -> anyhow::Result<()> {
        let known = Self::load(state_dir)?;
        let is_ours = |network: &Self| {
            network
                .owner()
                .is_some_and(|owner| owner == state_dir.state())
        };
        known.filter(is_ours).map_or(Ok(()), Self::clear)
    }

    /// Returns the state directory of the cluster that has the number.
    fn owner(self) -> Option<PathBuf> {
        let record = fs::read_to_string(self.record()).ok()?;
        Some(record.trim().into())
    }

    /// Returns whether another cluster has the number. What is left of one whose state directory is gone is removed.
    fn is_taken(self, state_dir: &StateDir) -> anyhow::Result<bool> {
        let other = self.owner().filter(|owner| owner != state_dir.state());
        let Some(owner) = other else {
            return Ok(false);
        };
        let other = StateDir::find(&owner, Some(owner.clone()));
        if Self::load(&other)?.is_some_and(|network| network.number == self.number) {
            return Ok(true);
        }
        self.clear()?;
        Ok(false)
    }

    /// Removes the bridge and the record.
    fn clear(self) -> anyhow::Result<()> {
        bridge::remove(self)?;
        remove(&self.record())
    }

    /// Records that the cluster has the number, and keeps it for later starts.
    fn claim(self, state_dir: &StateDir) -> anyhow::Result<()> {
        let path = file(state_dir);
        let text = serde_json::to_vec(&self)?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        let record = format!("{}\n", state_dir.state().display());
        let path = self.record();
        fs::write(&path, record).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn file(state_dir: &StateDir) -> PathBuf {
    state_dir.state().join("network.json")
}

/// Returns the network of a cluster of several machines that is to start, of which this one has the address, and claims
/// its number.
///
/// # Errors
/// If another cluster has its number, or a range of a cluster that starts for the first time overlaps a network of this
/// machine.
pub fn of_machines(
    state_dir: &StateDir,
    address: Ipv4Addr,
    fresh: bool,
) -> anyhow::Result<Network> {
    let is_new = fresh || Network::load(state_dir)?.is_none();
    let network = claim(state_dir, Kind::Machines(address), fresh)?;
    if is_new && let Err(error) = check_overlap(&network.ranges()?) {
        // Another start may find other networks.
        network.clear()?;
        remove(&file(state_dir))?;
        return Err(error);
    }
    Ok(network)
}

/// Returns the network of a cluster that is to start, and claims its number. `traffic` is the way in which Services
/// carry traffic; a cluster that starts `fresh` has no objects.
///
/// # Errors
/// If the mode is [`Mode::Bridge`] and the machine does not allow that, or another cluster has its number.
pub fn decide(
    state_dir: &StateDir,
    mode: Mode,
    traffic: Traffic,
    fresh: bool,
) -> anyhow::Result<Network> {
    let obstacle = match mode {
        Mode::Host => None,
        Mode::Auto | Mode::Bridge => bridge::obstacle(),
    };
    match (mode, &obstacle) {
        (Mode::Bridge, Some(why)) => bail!("--pod-network bridge: {why}"),
        (_, Some(why)) => println!("Pods will share the network of this machine: {why}"),
        _ => {}
    }
    let kind = match traffic {
        _ if mode != Mode::Host && obstacle.is_none() => Kind::Bridge,
        Traffic::Userspace => Kind::Loopback,
        Traffic::Nftables | Traffic::None => Kind::Host,
    };
    claim(state_dir, kind, fresh)
}

/// Returns the network of this kind of a cluster that is to start, and claims its number.
fn claim(state_dir: &StateDir, kind: Kind, fresh: bool) -> anyhow::Result<Network> {
    let _lock = lock().context("cannot lock the records of clusters")?;
    let network = match Network::load(state_dir)? {
        None => free(state_dir, kind)?,
        Some(network) if !fresh => network.again(state_dir, kind)?,
        Some(network) if network.is_taken(state_dir)? => free(state_dir, kind)?,
        Some(network) => Network { kind, ..network },
    };
    network.claim(state_dir)?;
    Ok(network)
}

impl Network {
    /// Returns the network of a cluster that starts again. The addresses of its Services stay.
    fn again(self, state_dir: &StateDir, kind: Kind) -> anyhow::Result<Self> {
        match (self.machine(), Self { kind, ..self }.machine()) {
            (Some(before), now) if now != Some(before) => bail!(
                "the cluster is one of several machines, of which this one has the address {before}: start it with --machine {before}, or another one with --fresh"
            ),
            (None, Some(_)) => bail!(
                "the cluster was started for this machine alone: --fresh starts one of several machines, without its objects, which `setpoint backup` saves"
            ),
            _ => {}
        }
        if self.is_taken(state_dir)? {
            bail!(
                "the cluster of {} has the addresses of this one; stop it with `setpoint down` and remove its state directory, or start this one with --fresh",
                self.owner().unwrap_or_default().display()
            );
        }
        let changes = (self.kind == Kind::Loopback) != (kind == Kind::Loopback);
        if changes {
            println!("Pods and Services keep their kind of addresses; --fresh starts with others");
        }
        let kind = if changes { self.kind } else { kind };
        Ok(Self { kind, ..self })
    }
}

/// Removes a file if it is there.
fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the directory of the records of this user.
fn records() -> PathBuf {
    let user = Uid::effective();
    match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user.is_root() => RECORDS.into(),
        Some(directory) => PathBuf::from(directory).join("setpoint"),
        None => std::env::temp_dir().join(format!("setpoint-{user}")),
    }
}

/// Locks the records against other clusters that start.
fn lock() -> io::Result<Flock<File>> {
    private::create_dir_all(&records())?;
    let file = File::create(records().join("lock"))?;
    Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| errno.into())
}

#[cfg(test)]
mod tests;
