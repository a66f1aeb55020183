//! The parts of the control plane of a cluster that have joined it from this state directory, by `setpoint join`.
//!
//! ```text
//! control-plane/gateway.json, controller.json, etcd.json    a record of each
//! pki/                                                      the CAs of the cluster, and certificates of its processes
//! ```
//! A state directory with such parts has no cluster of its own.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::{fs, io};

use anyhow::Context as _;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use setpoint_host::private;
use setpoint_model::bootstrap_token::JOINING_AGENTS;

use super::cluster_spec::{ClusterSpec, address};
use super::state_dir::StateDir;

/// A kind of process that a token brings in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Joining {
    /// The agent of a node
    Agent,
    /// A gateway
    Gateway,
    /// A replica of each controller, of the scheduler and of the cluster's DNS
    Controller,
    /// A member of etcd
    Etcd,
}

impl Joining {
    /// Everything that joins.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Gateway, Self::Controller, Self::Etcd];

    /// Returns the word for it on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Gateway => "gateway",
            Self::Controller => "controller",
            Self::Etcd => "etcd",
        }
    }

    /// Returns the group of the users of its tokens.
    pub const fn group(self) -> &'static str {
        match self {
            Self::Agent => JOINING_AGENTS,
            Self::Gateway => "system:bootstrappers:setpoint:gateway",
            Self::Controller => "system:bootstrappers:setpoint:controller",
            Self::Etcd => "system:bootstrappers:setpoint:etcd",
        }
    }

    /// Returns the noun for messages, with its article.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Agent => "an agent",
            Self::Gateway => "a gateway",
            Self::Controller => "a replica of the controllers",
            Self::Etcd => "a member of etcd",
        }
    }
}

/// The control plane of a cluster, as a machine has to know it to run a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlPlane {
    /// The ports, ranges and names of the cluster. Its `network` has the address of the machine that this is of.
    pub spec: ClusterSpec,
    /// The URL that gateways publish for clients.
    pub server: String,
    /// The URLs at which clients reach the members of etcd that vote.
    pub etcd: Vec<String>,
    /// The URLs of the gateways.
    pub gateways: Vec<String>,
}

impl ControlPlane {
    /// Returns that of another machine, with one replica of each service.
    pub fn at(self, machine: Ipv4Addr) -> Self {
        let spec = ClusterSpec {
            gateways: self.spec.gateways.into_iter().take(1).collect(),
            replicas: 1,
            profile: self.spec.profile,
            etcd: self.spec.etcd,
            tls_sans: self.spec.tls_sans,
            dns: self.spec.dns.into_iter().take(1).collect(),
            network: self.spec.network.at(machine),
            ..ClusterSpec::default()
        };
        Self { spec, ..self }
    }
}

/// A part of a control plane that joins, or has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    /// The kind; never an agent, of which there may be several.
    pub kind: Joining,
    /// The address of this machine.
    pub machine: Ipv4Addr,
    /// The control plane, as of this machine.
    pub plane: ControlPlane,
    /// The members of etcd, `<name>=<URL of peers>` and comma-separated, when it became one; empty for others.
    #[serde(default)]
    pub initial_cluster: String,
    /// The id of the token by which it has joined.
    pub token: String,
}

impl Component {
    /// Returns one that joins by this token, on the machine with this address.
    pub fn new(kind: Joining, machine: Ipv4Addr, plane: ControlPlane, token: &str) -> Self {
        Self {
            kind,
            machine,
            plane: plane.at(machine),
            initial_cluster: String::new(),
            token: token.to_owned(),
        }
    }

    /// Returns all of a state directory.
    ///
    /// # Errors
    /// If a record cannot be read, or is damaged.
    pub fn all(state_dir: &StateDir) -> anyhow::Result<Vec<Self>> {
        let read = Joining::ALL.map(|kind| Self::read(state_dir, kind));
        read.into_iter().filter_map(Result::transpose).collect()
    }

    /// Returns the one of this kind, if there is one.
    ///
    /// # Errors
    /// As [`Self::all`].
    pub fn read(state_dir: &StateDir, kind: Joining) -> anyhow::Result<Option<Self>> {
        let path = file(state_dir, kind);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let component = serde_json::from_str(&text);
        component
            .map(Some)
            .with_context(|| format!("{} is damaged", path.display()))
    }

    /// Writes the record.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn write(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let (folder, path) = (state_dir.components(), file(state_dir, self.kind));
        private::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let text = serde_json::to_string_pretty(self)? + "\n";
        private::write(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Removes the record, and the folder with the last one.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let (folder, path) = (state_dir.components(), file(state_dir, self.kind));
        fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        match Self::all(state_dir)?.is_empty() {
            true => fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot delete {}", folder.display())),
            false => Ok(()),
        }
    }

    /// Returns the URLs of the gateways, comma-separated: first that of this machine, if it has one.
    pub fn addresses(&self) -> String {
        let own = (self.kind == Joining::Gateway).then(|| address(self.plane.spec.gateways[0]));
        let reached = self.plane.spec.server();
        let others = self.plane.gateways.iter().filter(|url| **url != reached);
        let urls: Vec<_> = own.into_iter().chain(others.cloned()).collect();
        urls.join(",")
    }
}

fn file(state_dir: &StateDir, kind: Joining) -> PathBuf {
    state_dir.components().join(format!("{}.json", kind.name()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::network::Network;
    use super::*;

    fn component(kind: Joining) -> Component {
        let first = Ipv4Addr::new(10, 0, 0, 1);
        let spec = ClusterSpec {
            gateways: vec![6443, 6444],
            replicas: 3,
            relays: true,
            etcd: 2479,
            tls_sans: vec!["api.example.com".to_owned()],
            dns: vec![1053, 1054],
            listen: vec![first.into()],
            network: Network::default().at(first),
            ..ClusterSpec::default()
        };
        let plane = ControlPlane {
            server: spec.server(),
            spec,
            etcd: vec!["https://10.0.0.1:2479".to_owned()],
            gateways: ["1:6443", "1:6444", "2:6443"]
                .map(|end| format!("https://10.0.0.{end}"))
                .into(),
        };
        Component::new(kind, Ipv4Addr::new(10, 0, 0, 2), plane, "abcdef")
    }

    #[test]
    fn a_record_is_read_again_and_others_cannot_read_it() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        assert_eq!(Component::all(&state_dir).unwrap(), []);
        let (gateway, etcd) = (component(Joining::Gateway), component(Joining::Etcd));
        for one in [&etcd, &gateway] {
            one.write(&state_dir).unwrap();
        }
        let all = Component::all(&state_dir).unwrap();
        assert_eq!(all, [gateway.clone(), etcd.clone()]);
        let file = file(&state_dir, Joining::Etcd);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        state_dir.pki().ensure([]).unwrap();
        assert!(!state_dir.has_cluster(), "the CAs are those of another one");
        gateway.remove(&state_dir).unwrap();
        etcd.remove(&state_dir).unwrap();
        assert_eq!(Component::all(&state_dir).unwrap(), []);
        assert!(state_dir.has_cluster());
        etcd.write(&state_dir).unwrap();
        fs::write(&file, "{").unwrap();
        let damaged = Component::all(&state_dir).unwrap_err().to_string();
        assert!(damaged.ends_with("etcd.json is damaged"), "{damaged}");
    }

    #[test]
    fn another_machine_has_one_gateway_at_its_own_address() {
        let gateway = component(Joining::Gateway);
        let spec = &gateway.plane.spec;
        assert_eq!(spec.network.machine(), Some(gateway.machine));
        assert_eq!((spec.gateways.as_slice(), spec.etcd), (&[6443][..], 2479));
        assert_eq!((spec.replicas, spec.relays), (1, false));
        assert_eq!(spec.dns, [1053]);
        assert_eq!(spec.listen, Vec::<std::net::IpAddr>::new());
        assert_eq!(spec.tls_sans, ["api.example.com"]);
        assert_eq!(gateway.plane.server, "https://10.0.0.1:6443");
        assert_eq!(
            gateway.addresses(),
            "https://127.0.0.1:6443,https://10.0.0.1:6443,https://10.0.0.1:6444"
        );
        let controller = component(Joining::Controller).addresses();
        assert_eq!(controller, "https://10.0.0.1:6443,https://10.0.0.1:6444");
    }

    #[test]
    fn each_joins_by_a_group_of_its_own() {
        for kind in Joining::ALL {
            let group = format!("system:bootstrappers:setpoint:{}", kind.name());
            assert_eq!(kind.group(), group);
        }
    }
}
