//! The requests of node agents for certificates of their nodes, whose number nobody knows before.
//!
//! ```text
//! requests/<node>                     made by the agent
//! <node>/ca.crt, tls.crt, tls.key     the answer
//! ```
//! All agents have the volume, and the socket of the engine, which makes them root on the machine: they trust each
//! other, and nothing here is a protection against one of them.

use std::fs;
use std::path::{Path, PathBuf};

use setpoint_host::private;
use setpoint_model::names;
use setpoint_tls::Files;

use crate::launcher::{Identity, Wanted};

/// The folder of requests.
const REQUESTS: &str = "requests";
/// The service whose volume has the requests.
const AGENT: &str = "node-agent";
/// The largest number of nodes that get a certificate.
const MAX: usize = 1_000;

/// The volume of agents.
pub struct Nodes(PathBuf);

impl Nodes {
    /// Returns the volume in this folder of volumes.
    pub fn new(volumes: &Path) -> Self {
        Self(volumes.join(AGENT))
    }

    /// Makes the folder of requests.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn prepare(&self) -> std::io::Result<()> {
        private::create_dir_all(&self.0.join(REQUESTS))
    }

    /// Returns whether a node has asked and has no certificate yet.
    pub fn is_asked(&self) -> bool {
        let mut names = self.names();
        names.any(|node| {
            !Files::in_directory(&self.0.join(node))
                .certificate_file
                .exists()
        })
    }

    /// Returns the certificates that nodes have asked for.
    pub fn wanted(&self) -> impl Iterator<Item = Wanted> {
        self.names().map(|node| Wanted {
            directory: self.0.join(&node),
            leaf: Identity::node(&node).replica(AGENT, &node).leaf(),
        })
    }

    fn names(&self) -> impl Iterator<Item = String> {
        let found = fs::read_dir(self.0.join(REQUESTS)).into_iter().flatten();
        let names = found
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        let is_free =
            |name: &String| names::validate_dns_subdomain(name).is_empty() && name != REQUESTS;
        names.filter(is_free).take(MAX)
    }
}
