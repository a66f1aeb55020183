//! The rules that the settings must obey.

use setpoint_host::settings::first_broken;
use setpoint_model::quantity::Amount;
use setpoint_runtime::Kind;

use super::Settings;
use crate::node::admission::PodNetwork;
use crate::node::reservation;
use crate::pod::api_server::Place;
use crate::pod::image_commands::ImageCommands;

/// Number of addresses for Pods in a node's network.
const MAX_PODS: usize = 253;

impl Settings {
    /// Checks each setting of the agent's own, and what several of them mean together.
    pub(super) fn check(&self) -> Result<(), String> {
        self.check_bootstrap()?;
        let quantity = |name: &str, text: &str| match text {
            "" => Ok(()),
            text => Amount::parse(text)
                .map(|_| ())
                .map_err(|error| format!("capacity.{name}: {error}")),
        };
        quantity("cpu", &self.capacity.cpu)?;
        quantity("memory", &self.capacity.memory)?;
        quantity("ephemeral-storage", &self.capacity.ephemeral_storage)?;
        self.eviction.thresholds()?;
        let reserved = |name: &str, text: &str| match reservation::parse(text) {
            Ok(_) => Ok(()),
            Err(problem) => Err(format!("{name}: {problem}")),
        };
        let images = ImageCommands::parse(&self.process.images);
        images.map_err(|problem| format!("process.images: {problem}"))?;
        reserved("kube-reserved", &self.kube_reserved)?;
        reserved("system-reserved", &self.system_reserved)?;
        first_broken(&[
            (
                self.shutdown_grace_period_critical_pods <= self.shutdown_grace_period,
                "shutdown-grace-period-critical-pods: must not be longer than shutdown-grace-period",
            ),
            (
                self.image_gc_high_threshold_percent <= 100,
                "image-gc-high-threshold-percent: must be at most 100",
            ),
            (
                self.image_gc_low_threshold_percent < self.image_gc_high_threshold_percent,
                "image-gc-low-threshold-percent: must be less than image-gc-high-threshold-percent",
            ),
            (
                self.pod_api_server.is_empty() || Place::parse(&self.pod_api_server).is_some(),
                "pod-api-server: must be a host and a port",
            ),
            (self.nodes > 0, "nodes: there must be at least one"),
            (
                self.node_ip.is_empty() || self.node_ip().is_some(),
                "node-ip: must be an IPv4 address",
            ),
            (
                self.pod_cidr.is_empty() || PodNetwork::parse(&self.pod_cidr).is_some(),
                "pod-cidr: must be a range of IPv4 with room for Pods",
            ),
            (
                self.process.bridge.is_empty()
                    || (self.node_ip().is_some() && self.runtime == Kind::Process),
                "process.bridge: needs node-ip and the process runtime",
            ),
            (
                self.nodes <= 1 || self.runtime == Kind::Simulated,
                "nodes: only simulated nodes can share a process",
            ),
            (
                self.log_limits().max_size > 0,
                "container-log-max-size: must be a quantity above zero",
            ),
            (
                !self.static_pods.is_on() || self.nodes == 1,
                "static-pods.directory: only a node that has the process for itself has static Pods",
            ),
            (
                !self.static_pods.is_on() || self.static_pods.directory.is_absolute(),
                "static-pods.directory: must be absolute",
            ),
            (
                !self.static_pods.period.is_zero(),
                "static-pods.period: must be longer than zero",
            ),
            (
                self.container_log_max_files >= 2,
                "container-log-max-files: there must be at least two",
            ),
            (
                self.local_path.as_os_str().is_empty() || self.local_path.is_absolute(),
                "local-path: must be absolute",
            ),
            (
                self.docker.image_volume_max_bytes() > 0,
                "docker.image-volume-max-size: must be a quantity above zero",
            ),
            (self.workers > 0, "workers: there must be at least one"),
            (
                self.docker.published_address.is_empty() || self.runtime == Kind::Docker,
                "docker.published-address: needs the docker runtime",
            ),
            (
                !self.heartbeat.is_zero(),
                "heartbeat: must be longer than zero",
            ),
            (
                !self.status_refresh.is_zero(),
                "status-refresh: must be longer than zero",
            ),
            (
                self.capacity.pods <= MAX_PODS,
                "capacity.pods: a node has 253 addresses for Pods",
            ),
        ])
    }

    /// Checks what an agent needs that has its certificates by CertificateSigningRequests.
    fn check_bootstrap(&self) -> Result<(), String> {
        if !self.bootstrap.is_on() {
            return Ok(());
        }
        first_broken(&[
            (
                !self.node_name.is_empty() && self.nodes == 1,
                "bootstrap.directory: one node must be named by node-name",
            ),
            (
                self.certificate_requests.as_os_str().is_empty(),
                "bootstrap.directory: not with certificate-requests",
            ),
            (
                self.gateway
                    .address
                    .split(',')
                    .all(|one| one.trim().starts_with("https://")),
                "bootstrap.directory: gateway.address must be one of https",
            ),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_simulated_nodes_share_a_process() {
        let mut settings = Settings {
            nodes: 10,
            ..Settings::default()
        };
        assert!(settings.check().is_err());
        settings.runtime = Kind::Simulated;
        assert_eq!(settings.check(), Ok(()));
    }

    #[test]
    fn an_invalid_amount_is_refused_with_the_name_of_its_setting() {
        let mut settings = Settings {
            system_reserved: "pods=1".into(),
            ..Settings::default()
        };
        let expected = "system-reserved: cannot reserve \"pods\" resource";
        assert_eq!(settings.check(), Err(expected.to_owned()));
        settings.system_reserved.clear();
        settings.capacity.memory = "plenty".into();
        assert!(
            settings
                .check()
                .unwrap_err()
                .starts_with("capacity.memory: ")
        );
    }
}
