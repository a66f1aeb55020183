//! How large a local cluster is, and on which ports: chosen by `up`, and recorded for every later command.

use std::{fs, io};

use anyhow::Context;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::folder::Folder;
use crate::port;

/// Where everything listens but relays.
pub const LOOPBACK: &str = "127.0.0.1";

/// How soon a standby takes over from a leader that crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Within 15 seconds, as Kubernetes does
    #[default]
    Standard,
    /// Within 3 seconds, for more renewals
    Fast,
}

/// A cluster's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// The port of each gateway; the first is the one that kubectl is told.
    pub gateways: Vec<u16>,
    /// Replicas of each service that elects a leader.
    pub replicas: usize,
    /// How soon a standby takes over.
    pub profile: Profile,
    /// Is there a relay between each caller of the gateways and these?
    pub relays: bool,
    /// etcd's client port.
    pub etcd: u16,
    /// etcd's peer port.
    pub etcd_peer: u16,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            gateways: vec![6443],
            replicas: 2,
            profile: Profile::Standard,
            relays: false,
            etcd: 2379,
            etcd_peer: 2380,
        }
    }
}

impl Shape {
    /// What was recorded, if it was.
    pub fn load(folder: &Folder) -> anyhow::Result<Option<Self>> {
        let path = folder.shape();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let shape = serde_json::from_str(&text);
        Ok(Some(shape.with_context(|| {
            format!("{} is damaged", path.display())
        })?))
    }

    /// Records it.
    pub fn save(&self, folder: &Folder) -> anyhow::Result<()> {
        let path = folder.shape();
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Every gateway's address, comma separated.
    pub fn addresses(&self) -> String {
        addresses(LOOPBACK, &self.gateways)
    }

    /// As many gateways as `count`, on the first port and on those after it that nobody uses.
    pub fn resize(&mut self, count: usize) -> anyhow::Result<()> {
        self.gateways.truncate(count);
        let mut next = self.gateways.last().copied();
        while self.gateways.len() < count {
            let port = next.and_then(|port| port.checked_add(1));
            let port = port.context("no free port is left for another gateway")?;
            let ours = port == self.etcd || port == self.etcd_peer;
            if !ours && port::check(port, "a gateway").is_ok() {
                self.gateways.push(port);
            }
            next = Some(port);
        }
        Ok(())
    }
}

/// Where a gateway on `port` is.
pub fn address(port: u16) -> String {
    addresses(LOOPBACK, &[port])
}

/// What listens at `ip` on these ports, comma separated.
pub fn addresses(ip: &str, ports: &[u16]) -> String {
    let addresses = ports.iter().map(|port| format!("http://{ip}:{port}"));
    addresses.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_shape_is_remembered() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::find(root.path(), None);
        let _held = folder.lock().unwrap();
        assert_eq!(Shape::load(&folder).unwrap(), None);
        let shape = Shape {
            replicas: 4,
            profile: Profile::Fast,
            ..Shape::default()
        };
        shape.save(&folder).unwrap();
        assert_eq!(Shape::load(&folder).unwrap(), Some(shape));
    }

    #[test]
    fn further_gateways_take_the_free_ports_that_follow() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().unwrap().port();
        let _held = TcpListener::bind(("127.0.0.1", taken));
        let mut shape = Shape {
            gateways: vec![taken - 1],
            etcd: taken + 1,
            ..Shape::default()
        };
        shape.resize(2).unwrap();
        assert!(shape.gateways[1] > taken + 1, "{shape:?}");
        let second = shape.gateways[1];
        shape.resize(3).unwrap();
        assert_eq!(shape.gateways[1], second, "those that run keep their ports");
        shape.resize(1).unwrap();
        assert_eq!(shape.addresses(), address(taken - 1));
    }
}
