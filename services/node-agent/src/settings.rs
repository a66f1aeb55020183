//! Settings of the node agent.

mod validation;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::{client, runtime};
use setpoint_host::DurationText;
use setpoint_model::quantity::Amount;
use setpoint_runtime::{Kind, LogLimits, cri, docker, process};
use setpoint_tls::{Credentials, Files};

use crate::bootstrap;
use crate::node::admission::PodNetwork;
use crate::node::eviction;
use crate::node::image_gc;
use crate::node::shutdown::GracePeriods;
use crate::node::static_pods;
use crate::node::{self, Capacity};
use crate::pod::api_server::Place;
use crate::pod::image_commands::ImageCommands;
use crate::start::{certificate, engine};

/// Settings of the node agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Connection to the gateway.
    pub gateway: client::Settings,
    /// Container runtime: cri, docker, process or simulated.
    pub runtime: Kind,
    /// Name of the node; empty for `node-<n>` in a Compose project with an engine, else the name of the instance.
    /// Several nodes get `-0`, `-1` and so on appended.
    pub node_name: String,
    /// Directory where the agent requests a certificate of its node from `setpoint certs --containers`, by a file with
    /// the name of the node; empty if it has one.
    ///
    /// The files of `tls` are then in a directory of that name: instead of `tls/ca.crt`, `tls/<node>/ca.crt`.
    pub certificate_requests: PathBuf,
    /// Certificates by CertificateSigningRequests.
    pub bootstrap: bootstrap::Settings,
    /// IP of the node, its InternalIP, as the kubelet's `--node-ip`; empty for that at which others reach the agent.
    pub node_ip: String,
    /// Range of the addresses of Pods that are processes and share the network of the machine, within 127.0.0.0/8, as
    /// the kubelet's `podCIDR`; empty for one that depends on the name of the node.
    pub pod_cidr: String,
    /// Number of nodes in this process; more than one only if simulated.
    pub nodes: usize,
    /// Number of Pods reconciled concurrently.
    pub workers: usize,
    /// Directory of the state of processes, which must survive restarts; empty for `.setpoint/node/<node-name>`.
    pub state_dir: PathBuf,
    /// Directory of the node's persistent volumes, the same path for the agent and the container engine; empty for
    /// `local-path` in the state directory, or none if the agent runs in a container.
    pub local_path: PathBuf,
    /// Host and port at which Pods reach the API, for example `10.0.0.1:6443`, which Pods find in their environment and
    /// their hosts file; empty for those of `gateway.address`.
    ///
    /// The host must be on the certificate of the gateway. For a gateway at the loopback, Pods in a network of an
    /// engine get the address of this machine in that network, where the gateway must listen, too. A name is looked up
    /// once a minute; by an agent in a container that is not in the network of Pods as that of a service of Compose
    /// there.
    pub pod_api_server: String,
    /// IPs of the cluster's DNS, which Pods with the `dnsPolicy` ClusterFirst ask; empty if there is none: they have
    /// the resolver of their node then. Processes need root to have another.
    ///
    /// Names are looked up as that of `pod_api_server`, when a container starts.
    pub cluster_dns: Vec<String>,
    /// Domain of the cluster, for the search path of these Pods and for host names.
    pub cluster_domain: String,
    /// Size at which the log file of a container is rotated, as a quantity.
    pub container_log_max_size: String,
    /// Maximum number of log files of a container, rotated ones included.
    pub container_log_max_files: u32,
    /// Time that a simulated container takes to start.
    #[serde(with = "DurationText")]
    pub start_delay: Duration,
    /// Whether Events are recorded: on, off, or auto (off if simulated).
    pub events: Switch,
    /// Interval of the renewals of a node's Lease.
    #[serde(with = "DurationText")]
    pub heartbeat: Duration,
    /// Interval of the updates of an unchanged node status.
    #[serde(with = "DurationText")]
    pub status_refresh: Duration,
    /// Time after which a stream of `exec`, `attach` or `port-forward` ends that carries nothing; 0s for
    /// never.
    #[serde(with = "DurationText")]
    pub streaming_connection_idle_timeout: Duration,
    /// Time that Pods have to end when the agent is stopped by a signal; 0s if they go on without it.
    #[serde(with = "DurationText")]
    pub shutdown_grace_period: Duration,
    /// The part of `shutdown_grace_period` for Pods with a priority of at least 2000000000, which end last.
    #[serde(with = "DurationText")]
    pub shutdown_grace_period_critical_pods: Duration,
    /// Use of the images' disk in percent from which on unused images that the agent has pulled are removed; 100 for
    /// never.
    pub image_gc_high_threshold_percent: u8,
    /// Use of the images' disk in percent down to which they are removed.
    pub image_gc_low_threshold_percent: u8,
    /// Time since its pull before which an unused image is not removed.
    #[serde(with = "DurationText")]
    pub image_minimum_gc_age: Duration,
    /// Eviction of Pods.
    pub eviction: eviction::Settings,
    /// Static Pods.
    pub static_pods: static_pods::Settings,
    /// Resources of each node.
    pub capacity: Capacity,
    /// Resources (cpu, memory, ephemeral-storage) that Pods cannot request, as the kubelet's `--kube-reserved`, for
    /// example
    /// `cpu=100m,memory=256Mi`; not of simulated nodes. Hard thresholds of eviction are subtracted, too.
    pub kube_reserved: String,
    /// Further such resources, as the kubelet's `--system-reserved`.
    pub system_reserved: String,
    /// The process runtime.
    pub process: process::Settings,
    /// The docker runtime.
    pub docker: docker::Settings,
    /// The cri runtime.
    pub cri: cri::Settings,
}

/// A switch with an automatic setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// On for runtimes that run containers, off for the simulated one, where recording an Event costs more than running
    /// the Pod.
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            runtime: Kind::Process,
            node_name: String::new(),
            certificate_requests: PathBuf::new(),
            bootstrap: bootstrap::Settings::default(),
            node_ip: String::new(),
            pod_cidr: String::new(),
            nodes: 1,
            workers: 32,
            state_dir: PathBuf::new(),
            local_path: PathBuf::new(),
            pod_api_server: String::new(),
            cluster_dns: Vec::new(),
            cluster_domain: "cluster.local".to_owned(),
            container_log_max_size: "10Mi".to_owned(),
            container_log_max_files: 5,
            start_delay: Duration::ZERO,
            events: Switch::Auto,
            heartbeat: Duration::from_secs(10),
            status_refresh: Duration::from_secs(300),
            streaming_connection_idle_timeout: Duration::from_secs(4 * 3600),
            shutdown_grace_period: Duration::ZERO,
            shutdown_grace_period_critical_pods: Duration::ZERO,
            image_gc_high_threshold_percent: 85,
            image_gc_low_threshold_percent: 80,
            image_minimum_gc_age: Duration::from_secs(120),
            eviction: eviction::Settings::default(),
            static_pods: static_pods::Settings::default(),
            capacity: Capacity::default(),
            kube_reserved: String::new(),
            system_reserved: String::new(),
            process: process::Settings::default(),
            docker: docker::Settings::default(),
            cri: cri::Settings::default(),
        }
    }
}

impl Settings {
    /// Returns whether Events are recorded.
    pub fn writes_events(&self) -> bool {
        match self.events {
            Switch::Auto => self.runtime != Kind::Simulated,
            Switch::On => true,
            Switch::Off => false,
        }
    }

    /// Returns the number of Pods whose reconciles are kept for `setpoint why`: those that run, and as many that have
    /// ended lately.
    pub fn explained_pods(&self) -> usize {
        let pods = self.nodes.saturating_mul(self.capacity.pods);
        pods.saturating_mul(2)
    }

    /// Returns the limits of container logs.
    pub fn log_limits(&self) -> LogLimits {
        let size = Amount::parse(&self.container_log_max_size).map_or(0, Amount::value);
        LogLimits {
            max_size: u64::try_from(size).unwrap_or_default(),
            max_files: self.container_log_max_files,
        }
    }

    /// Returns the IP of the node, if it is set.
    pub fn node_ip(&self) -> Option<Ipv4Addr> {
        self.node_ip.parse().ok()
    }

    /// Returns the address of the agent, as `host:port`, at the IP of the node if that is set.
    pub fn at_node_ip(&self, address: String) -> String {
        match (self.node_ip(), address.rsplit_once(':')) {
            (Some(ip), Some((_, port))) => format!("{ip}:{port}"),
            _ => address,
        }
    }

    /// Returns whether the Pods of a node have addresses of the range of its Node.
    pub fn uses_pod_range(&self) -> bool {
        match self.runtime {
            Kind::Simulated => true,
            Kind::Cri => self.cri.network == cri::Network::Routes,
            Kind::Process | Kind::Docker => !self.process.bridge.is_empty(),
        }
    }

    /// Returns whether the agent gives these Pods their addresses. Else the runtime does.
    pub fn gives_addresses(&self) -> bool {
        self.uses_pod_range() && self.runtime != Kind::Cri
    }

    /// Returns the paths of the machine that Pods may mount.
    pub fn host_paths(&self) -> &[String] {
        match self.runtime {
            Kind::Cri => &self.cri.host_paths,
            _ => &self.docker.host_paths,
        }
    }

    /// Returns the commands in place of images. Other runtimes have none.
    pub fn image_commands(&self) -> ImageCommands {
        let images = match self.runtime {
            Kind::Process => self.process.images.as_slice(),
            Kind::Cri | Kind::Docker | Kind::Simulated => &[],
        };
        ImageCommands::parse(images).unwrap_or_default()
    }

    /// Returns the settings of the nodes of this process.
    pub fn node(&self) -> node::Settings {
        node::Settings {
            node_name: self.node_name.clone(),
            pod_network: PodNetwork::parse(&self.pod_cidr),
            nodes: self.nodes,
            runtime: self.runtime,
            capacity: self.capacity.clone(),
            kube_reserved: self.kube_reserved.clone(),
            system_reserved: self.system_reserved.clone(),
            eviction: self.eviction.clone(),
        }
    }

    /// Returns the address of the API for Pods. `machine` is the address of this machine in their network, if they have
    /// one of their own; `None` if there is no address.
    pub fn pod_api_server(&self, machine: Option<Ipv4Addr>) -> Option<Place> {
        match self.pod_api_server.as_str() {
            "" => Place::of_gateways(&self.gateway.address, machine),
            set => Place::parse(set),
        }
    }

    /// Returns the time that Pods have to end when the agent is stopped.
    pub fn shutdown(&self) -> GracePeriods {
        GracePeriods {
            total: self.shutdown_grace_period,
            critical: self.shutdown_grace_period_critical_pods,
        }
    }

    /// Returns the settings of the collection of images.
    pub fn image_gc(&self) -> image_gc::Policy {
        image_gc::Policy {
            high_threshold_percent: self.image_gc_high_threshold_percent,
            low_threshold_percent: self.image_gc_low_threshold_percent,
            min_age: self.image_minimum_gc_age,
        }
    }

    /// Returns the settings of the controller that reconciles Pods.
    pub fn controller(&self) -> runtime::Settings {
        runtime::Settings {
            gateway: self.gateway.clone(),
            workers: self.workers,
            resync: Duration::ZERO,
            ..runtime::Settings::default()
        }
    }
}

impl setpoint_host::Settings for Settings {
    fn drain(&self) -> Duration {
        self.shutdown_grace_period
    }

    fn validate(&self) -> Result<(), String> {
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.docker.published()?;
        self.cri.validate()?;
        self.check()
    }

    fn has_own_identity(&self) -> bool {
        self.bootstrap.is_on()
    }

    async fn identity(&mut self, files: Files) -> anyhow::Result<Credentials> {
        if self.bootstrap.is_on() {
            return bootstrap::identity(self).await;
        }
        if self.certificate_requests.as_os_str().is_empty() {
            return Ok(Credentials::load(&files)?);
        }
        // Names the node.
        engine::connect(self).await?;
        let requests = &self.certificate_requests;
        let files = certificate::request(requests, &self.node_name, files).await?;
        Ok(Credentials::load(&files)?)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_settings_file_has_every_setting_with_its_default() {
        let template = setpoint_host::settings::template::<Settings>("node-agent", &());
        expect_file!["../../../deploy/config/node-agent.toml"].assert_eq(&template);
    }
}
