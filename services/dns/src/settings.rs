//! The settings of the cluster's DNS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use hickory_proto::rr::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::client;
use setpoint_host::settings::{Serving, first_broken};
use setpoint_tls::{Credentials, Files};
use tokio::sync::Semaphore;

use crate::answer::PodMode;
use crate::forward;
use crate::registration;
use crate::server::Limits;

/// Settings of the cluster's DNS.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connection to the gateway.
    pub gateway: client::Settings,
    /// Address and port of DNS, by UDP and TCP; port 0 picks a free port.
    pub dns_listen: SocketAddr,
    /// Domain of the cluster.
    pub domain: String,
    /// TTL of the cluster's records, and of the absence of names, in seconds.
    pub ttl: u32,
    /// Names of Pods (`10-0-0-1.default.pod.cluster.local`): disabled, insecure (any address, as kubeadm has it), or
    /// verified (addresses that a Pod of the namespace has, for which all Pods are watched).
    pub pods: PodMode,
    /// Networks whose addresses have names in the cluster, if one of its Services or endpoints has the address. Other
    /// questions for the names of addresses are forwarded.
    pub reverse_ranges: Vec<String>,
    /// Whether the first question of a Pod's walk along its search path is answered with the end of the walk, for which
    /// all Pods are watched.
    pub autopath: bool,
    /// Limits on connections by TCP.
    pub tcp: Limits,
    /// Questions about names outside of the cluster.
    pub forward: forward::Settings,
    /// The Service of the cluster's DNS and the endpoint of this replica.
    pub registration: registration::Settings,
    /// Certificate for clients of the process, if that is another one than the one for connections.
    pub serving: Serving,
}

impl Default for Settings {
    fn default() -> Self {
        let private = [
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "fc00::/7",
        ];
        Self {
            gateway: client::Settings::default(),
            dns_listen: (Ipv4Addr::LOCALHOST, 0).into(),
            domain: "cluster.local".to_owned(),
            ttl: 30,
            pods: PodMode::default(),
            reverse_ranges: private.map(str::to_owned).into(),
            autopath: false,
            tcp: Limits::default(),
            forward: forward::Settings::default(),
            registration: registration::Settings::default(),
            serving: Serving::default(),
        }
    }
}

impl Settings {
    /// Returns the name of the domain; `None` if it is none.
    pub fn origin(&self) -> Option<Name> {
        let mut name = Name::from_ascii(&self.domain).ok()?.to_lowercase();
        name.set_fqdn(true);
        (!name.is_root()).then_some(name)
    }

    /// Returns the networks whose addresses have names here.
    ///
    /// # Errors
    /// The first that is no network.
    pub fn reverse(&self) -> Result<Vec<(IpAddr, u8)>, String> {
        let ranges = self.reverse_ranges.iter();
        ranges.map(|range| network(range)).collect()
    }

    /// Returns whether Pods are watched.
    pub fn needs_pods(&self) -> bool {
        self.autopath || self.pods == PodMode::Verified
    }
}

fn network(range: &str) -> Result<(IpAddr, u8), String> {
    let parsed = range.split_once('/').and_then(|(ip, length)| {
        let (ip, length) = (ip.parse::<IpAddr>().ok()?, length.parse::<u8>().ok()?);
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        (length <= longest).then_some((ip, length))
    });
    parsed.ok_or_else(|| format!("reverse_ranges: {range:?} is not a network such as 10.0.0.0/8"))
}

fn is_ip_or_empty(text: &str) -> bool {
    text.is_empty() || text.parse::<IpAddr>().is_ok()
}

impl setpoint_host::Settings for Settings {
    fn drain(&self) -> std::time::Duration {
        self.registration.lameduck
    }

    async fn identity(&mut self, files: Files) -> anyhow::Result<Credentials> {
        Ok(self.serving.identity(&files)?)
    }

    fn validate(&self) -> Result<(), String> {
        let counts = [
            self.tcp.connections,
            self.tcp.connections_per_client,
            self.forward.concurrent,
        ];
        let usable = 1..=Semaphore::MAX_PERMITS;
        let timeouts = [
            self.tcp.idle,
            self.tcp.write,
            self.forward.timeout,
            self.forward.deadline,
        ];
        let has_ip = is_ip_or_empty(&self.registration.cluster_ip);
        first_broken(&[
            (
                self.origin().is_some(),
                "domain must be a name such as cluster.local",
            ),
            (
                counts.iter().all(|count| usable.contains(count)),
                "tcp.connections, tcp.connections_per_client and forward.concurrent must be from 1 to 2^61 - 1",
            ),
            (
                timeouts.iter().all(|time| !time.is_zero()),
                "timeouts must be longer than zero",
            ),
            (has_ip, "registration.cluster_ip must be an IP"),
            self.serving.rule(),
        ])?;
        self.reverse()?;
        self.forward.servers()?;
        self.gateway.validate().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_settings_file_has_every_setting_with_its_default() {
        let template = setpoint_host::settings::template::<Settings>("dns", &());
        expect_file!["../../../deploy/config/dns.toml"].assert_eq(&template);
    }

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            setpoint_host::Settings::validate(&settings).unwrap();
            change(&mut settings);
            setpoint_host::Settings::validate(&settings).unwrap_err()
        };
        assert!(refused(|one| one.domain = ".".to_owned()).contains("domain"));
        assert!(
            refused(|one| one.reverse_ranges = vec!["10.0.0.0/33".to_owned()]).contains("network")
        );
        for count in [0, usize::MAX] {
            let mut settings = Settings::default();
            settings.tcp.connections_per_client = count;
            let error = setpoint_host::Settings::validate(&settings).unwrap_err();
            assert!(error.contains("connections_per_client"), "{error}");
        }
        assert!(refused(|one| one.forward.upstreams = vec!["x".to_owned()]).contains("\"x\""));
        assert!(refused(|one| one.registration.cluster_ip = "x".to_owned()).contains("cluster_ip"));
    }
}
