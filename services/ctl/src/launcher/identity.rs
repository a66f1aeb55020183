//! The identities of a cluster's processes: what their certificates say.

use std::time::Duration;

use setpoint_model::users::{self, ADMINISTRATORS, NODE_PREFIX, NODES, SERVICES};
use setpoint_tls::authority::{Leaf, Usage};

use super::cluster_spec::LOOPBACK;

/// The life of the certificate of a process.
pub const PROCESS_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The life of the certificate of a user.
pub const USER_LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The names at which a Pod reaches the API in the cluster.
pub const API_NAMES: [&str; 4] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The subject and the names of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user that requests of the process come from (CN).
    pub user: String,
    /// The groups of this user (O).
    pub groups: Vec<String>,
    /// The DNS names and IPs at which others reach the process; empty for one that only connects to others.
    pub hosts: Vec<String>,
    /// The life of the certificate.
    pub lifetime: Duration,
}

impl Identity {
    /// Returns the identity of a user, whom nobody connects to.
    pub fn user(user: &str, groups: &[&str]) -> Self {
        Self {
            user: user.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            hosts: Vec::new(),
            lifetime: USER_LIFETIME,
        }
    }

    /// Returns the identity of the cluster's administrator.
    pub fn administrator() -> Self {
        Self::user("system:admin", &[ADMINISTRATORS])
    }

    /// Returns the identity of a process, without the names at which it is reached.
    fn process(user: &str, groups: &[&str]) -> Self {
        Self {
            lifetime: PROCESS_LIFETIME,
            ..Self::user(user, groups)
        }
    }

    /// Returns the identity of a replica of `service`.
    pub fn service(service: &str) -> Self {
        Self::process(&users::of_service(service), &[SERVICES])
    }

    /// Returns the identity of etcd.
    pub fn etcd() -> Self {
        Self::process("etcd", &[])
    }

    /// Returns the identity of the agent of one node.
    pub fn node(node: &str) -> Self {
        Self::process(&format!("{NODE_PREFIX}{node}"), &[NODES]).reached_at([node])
    }

    /// Returns the identity of the agent of the simulated nodes `<prefix>-0`, `<prefix>-1` and so on. They are too many
    /// for a certificate.
    pub fn simulated_nodes(prefix: &str) -> Self {
        let user = format!("{}{prefix}", users::SIMULATED_NODES_PREFIX);
        Self::process(&user, &[users::SIMULATED_NODES])
    }

    /// Returns the identity with the names that each process of this machine has: its service, its own, and the
    /// loopback.
    #[must_use]
    pub fn replica(self, service: &str, name: &str) -> Self {
        self.reached_at([service, name, "localhost", LOOPBACK, "::1"])
    }

    /// Returns the identity with the names of the Kubernetes API, and those that the user has given.
    #[must_use]
    pub fn api(self, given: &[String]) -> Self {
        self.reached_at(API_NAMES).reached_at(given)
    }

    /// Returns the identity with further DNS names or IPs.
    #[must_use]
    pub fn reached_at(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hosts.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Returns what the certificate says.
    pub fn leaf(&self) -> Leaf {
        Leaf {
            name: self.user.clone(),
            groups: self.groups.clone(),
            hosts: self.hosts.clone(),
            usage: match self.hosts.is_empty() {
                true => Usage::Client,
                false => Usage::ServerAndClient,
            },
            lifetime: self.lifetime,
        }
    }
}
