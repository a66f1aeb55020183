//! The agents that have joined a cluster from this state directory, by `setpoint join`.
//!
//! ```text
//! join/<node>/agent.json                  this record
//! join/<node>/ca.crt                      the CA of the cluster, as it was pinned
//! join/<node>/token                       the bootstrap token, until the agent has a certificate
//! join/<node>/client.crt, client.key …    the certificates of the agent, which it renews itself
//! ```
//! A state directory may have such agents alone: that of a machine without a cluster of its own.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use setpoint_host::private;
use setpoint_tls::{Credentials, Files, ServingFiles};

use super::cluster_network::ClusterNetwork;
use super::state_dir::StateDir;

/// The name of the record.
const RECORD: &str = "agent.json";

/// The runtime of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// Containers are processes of this machine
    #[default]
    Process,
    /// Containers of a container engine
    Docker,
    /// Containers of containerd, or another runtime that serves the CRI
    Cri,
    /// Pods have a status and nothing else
    Simulated,
}

impl Runtime {
    /// Returns the value of the agent's flag.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Docker => "docker",
            Self::Cri => "cri",
            Self::Simulated => "simulated",
        }
    }
}

/// The network of the Pods of a node that is a machine of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PodNetwork {
    /// A bridge with the range of the node, and routes to the other machines, which are in one network
    #[default]
    Routes,
    /// The network that is configured on the machine for the CNI
    Cni,
}

/// The network of a node that is a machine of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeNetwork {
    /// The address of the machine.
    pub address: Ipv4Addr,
    /// The ranges and addresses of the cluster.
    pub cluster: ClusterNetwork,
    /// The network of its Pods.
    pub pods: PodNetwork,
    /// The directory of the configuration of the CNI; `None` for the agent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni_conf_dir: Option<PathBuf>,
}

impl NodeNetwork {
    /// Returns the arguments by which an agent, or its sweep, knows the configuration of the CNI.
    pub fn cni(&self) -> Vec<String> {
        if self.pods == PodNetwork::Cni {
            return Vec::new();
        }
        let directory = self.cni_conf_dir.iter();
        let directory = directory.flat_map(|directory| {
            [
                "--cri-cni-conf-dir".to_owned(),
                directory.display().to_string(),
            ]
        });
        let network = ["--cri-network", "routes"].map(str::to_owned);
        network.into_iter().chain(directory).collect()
    }
}

/// An agent that joins, or has joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    /// The node.
    pub node: String,
    /// The URL of the gateway.
    pub server: String,
    /// Its runtime.
    pub runtime: Runtime,
    /// The socket of a runtime that serves the CRI; `None` for the agent's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cri_endpoint: Option<String>,
    /// Its network; `None` for a node on the machine of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NodeNetwork>,
    /// The id of the token by which it has joined.
    pub token: String,
}

impl Joined {
    /// Returns all of a state directory, by the names of their nodes. Records that cannot be read are left out.
    pub fn all(state_dir: &StateDir) -> Vec<Self> {
        let folders = fs::read_dir(state_dir.joined()).into_iter().flatten();
        let nodes = folders
            .flatten()
            .filter_map(|folder| folder.file_name().into_string().ok());
        let joined = nodes.filter_map(|node| Self::read(state_dir, &node));
        let mut joined: Vec<_> = joined.collect();
        joined.sort_by(|one, other| one.node.cmp(&other.node));
        joined
    }

    /// Returns the agent of this node, if there is one.
    pub fn read(state_dir: &StateDir, node: &str) -> Option<Self> {
        let text = fs::read_to_string(state_dir.joined().join(node).join(RECORD)).ok()?;
        let joined: Self = serde_json::from_str(&text).ok()?;
        (joined.node == node).then_some(joined)
    }

    /// Returns its network if it is a machine of its own that runs Pods.
    pub fn machine(&self) -> Option<&NodeNetwork> {
        let network = self.network.as_ref();
        network.filter(|_| self.runtime != Runtime::Simulated)
    }

    /// Returns its folder.
    pub fn folder(&self, state_dir: &StateDir) -> PathBuf {
        state_dir.joined().join(&self.node)
    }

    /// Returns the file with its token.
    pub fn token_file(&self, state_dir: &StateDir) -> PathBuf {
        self.folder(state_dir).join("token")
    }

    /// Returns the files by which the node is a client of the gateways. It has them once its request was approved.
    pub fn client_files(&self, state_dir: &StateDir) -> Files {
        let folder = self.folder(state_dir);
        Files {
            ca_file: folder.join("ca.crt"),
            certificate_file: folder.join("client.crt"),
            key_file: folder.join("client.key"),
        }
    }

    /// Returns the files by which the node serves gateways. It has them some seconds after those of the client.
    pub fn serving_files(&self, state_dir: &StateDir) -> ServingFiles {
        let folder = self.folder(state_dir);
        ServingFiles {
            certificate_file: folder.join("serving.crt"),
            key_file: folder.join("serving.key"),
        }
    }

    /// Returns the credentials of the node, if it has a certificate that has not expired.
    pub fn credentials(&self, state_dir: &StateDir) -> Option<Credentials> {
        let files = self.client_files(state_dir);
        // A missing file is no error before the node has joined.
        let exist = files.certificate_file.exists() && files.key_file.exists();
        let loaded = exist.then(|| Credentials::load(&files).ok()).flatten();
        loaded.filter(|credentials| credentials.expiry() > Timestamp::now())
    }

    /// Writes the record, the CAs and the token into a folder for this user alone, and removes what an earlier agent of
    /// the node has left there.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn write(
        &self,
        state_dir: &StateDir,
        authorities: &str,
        token: &str,
    ) -> anyhow::Result<()> {
        self.remove(state_dir)?;
        let folder = self.folder(state_dir);
        private::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let record = serde_json::to_string_pretty(self)? + "\n";
        for (name, text) in [("ca.crt", authorities), ("token", token), (RECORD, &record)] {
            let path = folder.join(name);
            private::write(&path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Removes the folder.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let folder = self.folder(state_dir);
        match folder.exists() {
            true => fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot delete {}", folder.display())),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn an_agent_that_joins_has_a_folder_that_others_cannot_read() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        assert_eq!(Joined::all(&state_dir), []);
        let agent = |node: &str| Joined {
            node: node.to_owned(),
            server: "https://127.0.0.1:6443".to_owned(),
            runtime: Runtime::Process,
            cri_endpoint: None,
            network: None,
            token: "abcdef".to_owned(),
        };
        let (one, other) = (agent("worker-1"), agent("worker-2"));
        for joined in [&other, &one] {
            joined
                .write(&state_dir, "ca", "abcdef.0123456789abcdef")
                .unwrap();
        }
        fs::write(one.client_files(&state_dir).certificate_file, "old").unwrap();
        one.write(&state_dir, "ca", "abcdef.0123456789abcdef")
            .unwrap();
        assert!(one.credentials(&state_dir).is_none());
        assert_eq!(Joined::all(&state_dir), [one.clone(), other.clone()]);
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(one.folder(&state_dir)), 0o700);
        assert_eq!(mode(one.token_file(&state_dir)), 0o600);
        assert!(!one.client_files(&state_dir).certificate_file.exists());
        one.remove(&state_dir).unwrap();
        assert_eq!(Joined::all(&state_dir), [other]);
        assert!(!state_dir.has_cluster());
    }
}
