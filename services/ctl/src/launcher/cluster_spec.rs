//! The size and the ports of a local cluster: chosen by `up`, and recorded for later commands.

use std::net::IpAddr;
use std::{fs, io};

use anyhow::Context;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::network::Network;
use super::port;
use super::proxy::Traffic;
use super::state_dir::StateDir;

/// The address that all processes except relays listen on.
pub const LOOPBACK: &str = "127.0.0.1";

/// The first port of the cluster's DNS: that of DNS itself needs a right, and is often taken.
const DNS_PORT: u16 = 1053;

/// The lease timing of the services that elect a leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A standby takes over within 15 seconds of a crash, as in Kubernetes
    #[default]
    Standard,
    /// A standby takes over within 3 seconds, at the price of more renewals
    Fast,
}

impl Profile {
    /// Returns the arguments of a service that elects a leader.
    pub fn election(self) -> Vec<String> {
        match self {
            Self::Standard => Vec::new(),
            Self::Fast => election("2s", "1400ms"),
        }
    }
}

/// Returns the arguments for elections with these durations, and the retry period of [`Profile::Fast`].
pub fn election(lease_duration: &str, renew_deadline: &str) -> Vec<String> {
    let flags = [
        ("--election-lease-duration", lease_duration),
        ("--election-renew-deadline", renew_deadline),
        ("--election-retry-period", "300ms"),
    ];
    let words = flags.iter().flat_map(|(flag, value)| [*flag, *value]);
    words.map(str::to_owned).collect()
}

/// The parameters of a local cluster, stored as `cluster.json`. Those of other versions are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterSpec {
    /// The port of each gateway; kubeconfig names the first.
    pub gateways: Vec<u16>,
    /// Replicas of each service that elects a leader.
    pub replicas: usize,
    /// The lease timing of these services.
    pub profile: Profile,
    /// Whether each client of the gateways connects through a relay of its own.
    pub relays: bool,
    /// etcd's client port.
    pub etcd: u16,
    /// Further DNS names and IPs on the certificates of gateways.
    pub tls_sans: Vec<String>,
    /// Further addresses that gateways listen on, such as that of this machine in the network of an engine's Pods.
    pub listen: Vec<IpAddr>,
    /// The addresses of Pods, nodes and Services.
    pub network: Network,
    /// The way in which Services carry traffic; `None` if that is not decided yet.
    pub traffic: Option<Traffic>,
    /// The port of each replica of the cluster's DNS; empty for a cluster without it.
    pub dns: Vec<u16>,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            gateways: vec![6443],
            replicas: 2,
            profile: Profile::Standard,
            relays: false,
            etcd: 2379,
            tls_sans: Vec::new(),
            listen: Vec::new(),
            network: Network::default(),
            traffic: None,
            dns: Vec::new(),
        }
    }
}

impl ClusterSpec {
    /// Reads the recorded spec; `None` if there is no record.
    pub fn load(state_dir: &StateDir) -> anyhow::Result<Option<Self>> {
        let path = state_dir.cluster_spec();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let spec = serde_json::from_str(&text);
        Ok(Some(spec.with_context(|| {
            format!("{} is damaged", path.display())
        })?))
    }

    /// Writes the record.
    pub fn save(&self, state_dir: &StateDir) -> anyhow::Result<()> {
        let path = state_dir.cluster_spec();
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns whether Services carry traffic.
    pub fn carries_traffic(&self) -> bool {
        !matches!(self.traffic, None | Some(Traffic::None))
    }

    /// Returns the addresses of all gateways, comma-separated.
    pub fn addresses(&self) -> String {
        addresses(LOOPBACK, &self.gateways)
    }

    /// Returns the URL of the first gateway for clients that may be on another machine of the cluster.
    pub fn server(&self) -> String {
        let machine = self.network.machine().map(|ip| ip.to_string());
        let ip = machine.unwrap_or_else(|| LOOPBACK.to_owned());
        addresses(&ip, &self.gateways[..1])
    }

    /// Returns the port of etcd for its other members, beside that for clients.
    pub fn etcd_peers(&self) -> u16 {
        self.etcd
            .checked_add(1)
            .unwrap_or_else(|| self.etcd.saturating_sub(1))
    }

    /// Sets the number of gateways. Existing gateways keep their ports; new ones get the free ports that follow.
    pub fn resize(&mut self, count: usize) -> anyhow::Result<()> {
        self.gateways.truncate(count);
        let mut next = self.gateways.last().copied();
        while self.gateways.len() < count {
            let port = next.and_then(|port| port.checked_add(1));
            let port = port.context("no free port is left for another gateway")?;
            if ![self.etcd, self.etcd_peers()].contains(&port)
                && port::check(port, "a gateway").is_ok()
            {
                self.gateways.push(port);
            }
            next = Some(port);
        }
        Ok(())
    }

    /// Sets the number of replicas of the cluster's DNS. Existing ones keep their ports; new ones get free ports from
    /// [`DNS_PORT`] on.
    pub fn resize_dns(&mut self, count: usize) -> anyhow::Result<()> {
        self.dns.truncate(count);
        let mut ports = self
            .dns
            .last()
            .map_or(DNS_PORT, |last| last.saturating_add(1))..=u16::MAX;
        while self.dns.len() < count {
            let free = ports.find(|port| port::is_free_for_dns(*port));
            self.dns
                .push(free.context("no free port is left for the cluster's DNS")?);
        }
        Ok(())
    }
}

/// Returns the URL of a server on `port` of [`LOOPBACK`].
pub fn address(port: u16) -> String {
    addresses(LOOPBACK, &[port])
}

/// Returns the URLs of these ports at `ip`, comma-separated.
pub fn addresses(ip: &str, ports: &[u16]) -> String {
    let addresses = ports.iter().map(|port| format!("https://{ip}:{port}"));
    addresses.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;

    use super::super::topology::{gateway, stages};
    use super::*;

    #[test]
    fn gateways_listen_on_further_addresses_that_are_on_their_certificates() {
        let state_dir = StateDir::find(Path::new("/nowhere"), None);
        let flag = ["--listen-also", "172.18.0.1,fd00::1"];
        let mut spec = ClusterSpec::default();
        let plain = gateway(&state_dir, &spec, 0, "");
        assert!(!plain.args.iter().any(|arg| arg == flag[0]));
        spec.listen = vec!["172.18.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let further = gateway(&state_dir, &spec, 0, "");
        let mut pairs = further.args.windows(2);
        assert!(pairs.any(|words| words == flag), "{:?}", further.args);
        let hosts = further.identity.unwrap().hosts;
        assert!(spec.listen.iter().all(|ip| hosts.contains(&ip.to_string())));
    }

    #[test]
    fn a_saved_spec_is_loaded_again() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        assert_eq!(ClusterSpec::load(&state_dir).unwrap(), None);
        let spec = ClusterSpec {
            replicas: 4,
            profile: Profile::Fast,
            ..ClusterSpec::default()
        };
        spec.save(&state_dir).unwrap();
        assert_eq!(ClusterSpec::load(&state_dir).unwrap(), Some(spec));
    }

    #[test]
    fn further_gateways_take_the_free_ports_that_follow() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = taken.local_addr().unwrap().port();
        let _held = TcpListener::bind(("127.0.0.1", taken));
        let mut spec = ClusterSpec {
            gateways: vec![taken - 1],
            etcd: taken + 1,
            ..ClusterSpec::default()
        };
        spec.resize(2).unwrap();
        assert!(spec.gateways[1] > taken + 1, "{spec:?}");
        let second = spec.gateways[1];
        spec.resize(3).unwrap();
        assert_eq!(
            spec.gateways[1], second,
            "existing gateways keep their ports"
        );
        spec.resize(1).unwrap();
        assert_eq!(spec.addresses(), address(taken - 1));
    }

    #[test]
    fn replicas_of_the_dns_have_ports_of_their_own_and_can_be_removed() {
        let state_dir = StateDir::find(Path::new("/nowhere"), None);
        let started = |spec: &ClusterSpec| {
            let [_, _, clients] = stages(&state_dir, spec);
            let replicas = clients.into_iter().filter(|one| one.service == "dns");
            replicas.map(|one| one.args.join(" ")).collect::<Vec<_>>()
        };
        let mut spec = ClusterSpec::default();
        assert_eq!(started(&spec), [""; 0]);
        spec.resize_dns(2).unwrap();
        let replicas = started(&spec);
        for (replica, port) in replicas.iter().zip(&spec.dns) {
            let flag = format!("--dns-listen 127.0.0.1:{port} ");
            assert!(replica.contains(&flag), "{replica}");
        }
        assert!(spec.dns[0] < spec.dns[1] && replicas.len() == 2);
        spec.resize_dns(0).unwrap();
        assert_eq!(started(&spec), [""; 0]);
    }
}
