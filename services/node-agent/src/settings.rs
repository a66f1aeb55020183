//! What can be set.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_controller::client;
use setpoint_host::duration;
use setpoint_model::quantity::Amount;

use crate::runtime::{LogLimits, docker};

/// A node's network has this many addresses for Pods.
const MOST_PODS: usize = 253;

/// Settings of the node agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How to reach the gateway.
    pub gateway: client::Settings,
    /// What runs the containers.
    pub runtime: Kind,
    /// The node's name; empty for the name of the instance. With several nodes, `<name>-0`, `<name>-1` and so on.
    pub node_name: String,
    /// How many nodes this process is; more than one only if they are simulated.
    pub nodes: usize,
    /// How many Pods are worked on at once.
    pub workers: usize,
    /// Where the process runtime keeps what must outlive the agent; empty for `.setpoint/node/<node-name>`.
    pub state_dir: PathBuf,
    /// How much a container writes before its log file makes way for another, as a quantity.
    pub container_log_max_size: String,
    /// How many log files a container has.
    pub container_log_max_files: u32,
    /// How long a simulated container takes to start.
    #[serde(with = "duration")]
    pub start_delay: Duration,
    /// Whether Events are written.
    pub events: Switch,
    /// How often a node says that it is alive.
    #[serde(with = "duration")]
    pub heartbeat: Duration,
    /// How often a node reports its status though nothing changed.
    #[serde(with = "duration")]
    pub status_refresh: Duration,
    /// What a node has to give.
    pub capacity: Capacity,
    /// The container engine, for the docker runtime.
    pub docker: docker::Settings,
}

/// What runs the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Containers of a Docker engine.
    Docker,
    /// Plain processes of this machine.
    Process,
    /// Nothing: they are pretended.
    Simulated,
}

/// A switch that has an opinion of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// On where something really runs, off for the simulated one, where every Event costs more than the Pod.
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

/// What a node has to give.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capacity {
    /// A quantity; empty for what the machine has, or 32 if simulated.
    pub cpu: String,
    /// A quantity; empty for what the machine has, or 256Gi if simulated.
    pub memory: String,
    /// A quantity of disk for containers' own files; empty for what the machine has, or 1Ti if simulated.
    pub ephemeral_storage: String,
    /// How many Pods.
    pub pods: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self {
            cpu: String::new(),
            memory: String::new(),
            ephemeral_storage: String::new(),
            pods: 110,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gateway: client::Settings::default(),
            runtime: Kind::Process,
            node_name: String::new(),
            nodes: 1,
            workers: 32,
            state_dir: PathBuf::new(),
            container_log_max_size: "10Mi".to_owned(),
            container_log_max_files: 5,
            start_delay: Duration::ZERO,
            events: Switch::Auto,
            heartbeat: Duration::from_secs(10),
            status_refresh: Duration::from_secs(300),
            capacity: Capacity::default(),
            docker: docker::Settings::default(),
        }
    }
}

impl Settings {
    /// Are Events written?
    pub fn writes_events(&self) -> bool {
        match self.events {
            Switch::Auto => self.runtime != Kind::Simulated,
            Switch::On => true,
            Switch::Off => false,
        }
    }

    /// How much of what a container writes is kept.
    pub fn log_limits(&self) -> LogLimits {
        let size = Amount::parse(&self.container_log_max_size).map_or(0, Amount::value);
        LogLimits {
            max_size: u64::try_from(size).unwrap_or_default(),
            max_files: self.container_log_max_files,
        }
    }

    fn check(&self) -> Result<(), String> {
        let quantity = |name: &str, text: &str| match text {
            "" => Ok(()),
            text => Amount::parse(text)
                .map(|_| ())
                .map_err(|error| format!("capacity.{name}: {error}")),
        };
        quantity("cpu", &self.capacity.cpu)?;
        quantity("memory", &self.capacity.memory)?;
        quantity("ephemeral-storage", &self.capacity.ephemeral_storage)?;
        let rules = [
            (self.nodes == 0, "nodes: there must be at least one"),
            (
                self.nodes > 1 && self.runtime != Kind::Simulated,
                "nodes: only simulated nodes can share a process",
            ),
            (
                self.log_limits().max_size == 0,
                "container-log-max-size: must be a quantity above zero",
            ),
            (
                self.container_log_max_files < 2,
                "container-log-max-files: there must be at least two",
            ),
            (self.workers == 0, "workers: there must be at least one"),
            (
                self.heartbeat.is_zero(),
                "heartbeat: must be longer than zero",
            ),
            (
                self.status_refresh.is_zero(),
                "status-refresh: must be longer than zero",
            ),
            (
                self.capacity.pods > MOST_PODS,
                "capacity.pods: a node has 253 addresses for Pods",
            ),
        ];
        let broken = rules.iter().find(|(broken, _)| *broken);
        broken.map_or(Ok(()), |(_, rule)| Err((*rule).to_owned()))
    }
}

impl setpoint_host::Settings for Settings {
    fn describe() -> &'static [(&'static str, &'static str)] {
        &[
            ("gateway.address", "Where the gateway is"),
            ("gateway.timeout", "How long a call to the gateway may take"),
            (
                "runtime",
                "What runs the containers: docker, process or simulated",
            ),
            (
                "node_name",
                "Name of the node; empty for node-<n> in a Compose project with an engine, else the name of the instance. Several nodes get -0, -1 … appended",
            ),
            (
                "nodes",
                "How many nodes this process is; more than one only if simulated",
            ),
            ("workers", "How many Pods are worked on at once"),
            (
                "state_dir",
                "What must outlive the agent; empty for .setpoint/node/<node-name>",
            ),
            (
                "container_log_max_size",
                "How much a container writes before its log file makes way for another",
            ),
            (
                "container_log_max_files",
                "How many log files a container has, older ones included",
            ),
            (
                "start_delay",
                "How long a simulated container takes to start",
            ),
            (
                "events",
                "Whether Events are written: on, off, or auto (off if simulated)",
            ),
            ("heartbeat", "How often a node says that it is alive"),
            (
                "status_refresh",
                "How often a node reports its status though nothing changed",
            ),
            (
                "capacity.cpu",
                "CPUs of a node; empty for the machine's, or 32 if simulated",
            ),
            (
                "capacity.memory",
                "Memory of a node; empty for the machine's, or 256Gi if simulated",
            ),
            (
                "capacity.ephemeral_storage",
                "Disk of a node; empty for the machine's, or 1Ti if simulated",
            ),
            ("capacity.pods", "How many Pods a node takes"),
            ("docker.socket", "Where the container engine listens"),
            (
                "docker.network",
                "The engine's network for Pods; empty for the Compose project's `pods`, else `setpoint`",
            ),
            (
                "docker.pause_image",
                "The image that holds a Pod's namespaces",
            ),
            (
                "docker.fallback",
                "What runs the containers if no engine answers: none (the agent ends) or process, which runs them with the agent's own rights and networks",
            ),
            (
                "docker.cluster",
                "The label of the cluster's containers; empty for the Compose project's name, else setpoint",
            ),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        self.gateway.validate().map_err(|error| error.to_string())?;
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_described() {
        assert_eq!(
            setpoint_host::settings::undescribed::<Settings>(),
            Vec::<String>::new()
        );
    }

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
    fn a_capacity_that_is_no_quantity_is_refused_by_name() {
        let mut settings = Settings::default();
        settings.capacity.memory = "plenty".into();
        assert!(
            settings
                .check()
                .unwrap_err()
                .starts_with("capacity.memory: ")
        );
    }
}
