//! The options of `setpoint up`, and what they make of the spec of a cluster.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::bail;
use clap::{Args, value_parser};

use crate::launcher::{ClusterSpec, Network, Profile, StateDir, network, proxy};

/// The replicas of the cluster's DNS: one may be stopped.
const DNS_REPLICAS: usize = 2;

/// Options of `setpoint up`. A running cluster keeps the values of options that are not given.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Stop the running cluster and delete all objects first
    #[arg(long)]
    pub(super) fresh: bool,
    /// Port of the Kubernetes API on 127.0.0.1 [default: 6443]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Client port of etcd on 127.0.0.1 [default: 2379]
    #[arg(long, value_name = "PORT")]
    etcd_port: Option<u16>,
    /// Number of gateways; further ones listen on the free ports after the first [default: 1]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    gateways: Option<u8>,
    /// Number of replicas of each controller and of the scheduler; one of them leads [default: 2]
    #[arg(long, value_name = "N", value_parser = value_parser!(u8).range(1..=16))]
    replicas: Option<u8>,
    /// Lease timing: how soon a standby takes over from a crashed leader [default: standard]
    #[arg(long, value_enum)]
    profile: Option<Profile>,
    /// Connect each controller, scheduler and node agent to the gateways through a relay of its own, which `chaos
    /// partition` can freeze; `--relays=false` removes the relays [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    relays: Option<bool>,
    /// Further DNS names or IPs at which clients reach the gateways, on their certificates; may be repeated
    #[arg(long, value_name = "HOST")]
    tls_san: Vec<String>,
    /// Further IPs that the gateways listen on, on their certificates, such as that of this machine in the network of
    /// Docker nodes; may be repeated
    #[arg(long, value_name = "IP")]
    listen: Vec<IpAddr>,
    /// Network of the Pods that are processes [default: auto]
    #[arg(long, value_enum, value_name = "MODE")]
    pod_network: Option<network::Mode>,
    /// Start a cluster of several machines, of which this one has the address: nodes are those that join, this machine
    /// too if it does, and none are processes of this machine [default: a cluster of this machine alone]
    #[arg(long, value_name = "IP", conflicts_with_all = ["pod_network", "proxy"], value_parser = parse_machine)]
    machine: Option<Ipv4Addr>,
    /// Back end by which Services carry traffic on this machine [default: auto]
    #[arg(long, value_enum, value_name = "MODE")]
    proxy: Option<proxy::Mode>,
    /// Start two replicas of the cluster's DNS, on free ports from 1053 on. Pods with networks of their own ask them;
    /// without such networks, nothing is set up to do so. `--dns=false` removes them [default: true if Pods have
    /// networks of their own and Services carry traffic]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    dns: Option<bool>,
    /// Stay after the start: say which processes end, and start them again, until Ctrl-C, which leaves the cluster
    /// running
    #[arg(long)]
    pub(super) watch: bool,
}

impl Options {
    /// Returns the `current` spec with the given options applied.
    pub(super) fn apply_to(&self, current: ClusterSpec) -> anyhow::Result<ClusterSpec> {
        let mut spec = current;
        if let Some(port) = self.port.filter(|port| *port != spec.gateways[0]) {
            spec.gateways[0] = port;
        }
        spec.etcd = self.etcd_port.unwrap_or(spec.etcd);
        spec.profile = self.profile.unwrap_or(spec.profile);
        spec.relays = self.relays.unwrap_or(spec.relays);
        if !self.tls_san.is_empty() {
            spec.tls_sans.clone_from(&self.tls_san);
        }
        if !self.listen.is_empty() {
            spec.listen.clone_from(&self.listen);
        }
        spec.replicas = self.replicas.map_or(spec.replicas, usize::from);
        let gateways = self.gateways.map_or(spec.gateways.len(), usize::from);
        spec.resize(gateways)?;
        Ok(spec)
    }

    /// Returns the options with which a cluster that was stopped gets the network and the proxy that it had.
    pub(super) fn of(spec: &ClusterSpec) -> Self {
        let pod_network = match spec.network.has_bridge() {
            true => network::Mode::Bridge,
            false => network::Mode::Host,
        };
        if let Some(machine) = spec.network.machine() {
            return Self {
                machine: Some(machine),
                ..Self::default()
            };
        }
        let proxy = spec.traffic.map(|traffic| match traffic {
            proxy::Traffic::Nftables => proxy::Mode::Nftables,
            proxy::Traffic::Userspace => proxy::Mode::Userspace,
            proxy::Traffic::None => proxy::Mode::None,
        });
        Self {
            pod_network: Some(pod_network),
            proxy,
            ..Self::default()
        }
    }

    /// Decides what depends on this machine: the network of Pods, whether Services carry traffic, and DNS. What a
    /// running cluster has stays, unless an option asks for something else.
    pub(super) fn decide(
        &self,
        state_dir: &StateDir,
        spec: &mut ClusterSpec,
    ) -> anyhow::Result<()> {
        let starts = spec.traffic.is_none();
        if let Some(address) = self.machine_of(state_dir, spec)? {
            return self.decide_machines(state_dir, spec, address);
        }
        let traffic = match (self.proxy, spec.traffic) {
            (None, Some(kept)) => kept,
            (mode, _) => proxy::decide(state_dir, mode.unwrap_or_default())?,
        };
        spec.traffic = Some(traffic);
        if starts || self.fresh || self.pod_network.is_some() {
            let mode = self.pod_network.unwrap_or_default();
            spec.network = network::decide(state_dir, mode, traffic, self.fresh)?;
        }
        let asked = spec.network.has_bridge() && spec.carries_traffic();
        self.decide_dns(spec, starts, asked)
    }

    /// Returns the address of this machine, if the cluster is one of several: a cluster that was stopped stays one.
    fn machine_of(
        &self,
        state_dir: &StateDir,
        spec: &ClusterSpec,
    ) -> anyhow::Result<Option<Ipv4Addr>> {
        let known = self.machine.or(spec.network.machine());
        let asks_for_another = self.fresh || self.pod_network.is_some() || self.proxy.is_some();
        match known.is_some() || asks_for_another || spec.traffic.is_some() {
            true => Ok(known),
            false => Ok(Network::load(state_dir)?.and_then(Network::machine)),
        }
    }

    /// Decides what depends on this machine for a cluster of several: nodes that join carry the traffic of Services.
    fn decide_machines(
        &self,
        state_dir: &StateDir,
        spec: &mut ClusterSpec,
        address: Ipv4Addr,
    ) -> anyhow::Result<()> {
        let starts = spec.traffic.replace(proxy::Traffic::None).is_none();
        if !starts && !self.fresh && spec.network.machine() != Some(address) {
            bail!("the cluster runs for other machines; end it with `setpoint down` first");
        }
        if starts || self.fresh {
            spec.network = network::of_machines(state_dir, address, self.fresh)?;
        }
        self.decide_dns(spec, starts, true)
    }

    fn decide_dns(&self, spec: &mut ClusterSpec, starts: bool, asked: bool) -> anyhow::Result<()> {
        let dns = match (self.dns, starts) {
            (Some(wanted), _) => usize::from(wanted) * DNS_REPLICAS,
            (None, true) => usize::from(asked) * DNS_REPLICAS,
            (None, false) => spec.dns.len(),
        };
        spec.resize_dns(dns)
    }
}

/// Parses the address of this machine for others.
fn parse_machine(text: &str) -> Result<Ipv4Addr, String> {
    let address: Ipv4Addr = text
        .parse()
        .map_err(|_| "it must be an address of IPv4".to_owned())?;
    let no_other_reaches =
        address.is_loopback() || address.is_unspecified() || address.is_multicast();
    match no_other_reaches {
        true => Err("no other machine reaches this one at that address".to_owned()),
        false => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_several_has_an_address_that_others_reach() {
        assert_eq!(parse_machine("10.0.0.1"), Ok(Ipv4Addr::new(10, 0, 0, 1)));
        for wrong in ["127.0.0.1", "0.0.0.0", "224.0.0.1", "fd00::1", "here", ""] {
            assert!(parse_machine(wrong).is_err(), "{wrong}");
        }
    }
}
