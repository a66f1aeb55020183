//! The configurations of sandboxes and containers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_model::Key;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::ResourceRequirements;
use setpoint_proto::meta::Quantity;

use crate::{ContainerId, Dns, Hosts};

/// The configuration of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxConfig {
    /// Namespace of the Pod.
    pub namespace: String,
    /// Name of the Pod.
    pub name: String,
    /// Uid of the Pod.
    pub uid: String,
    /// Address of the Pod: the requested one, or the one that the runtime assigned.
    pub ip: Ipv4Addr,
    /// Host name of the containers; empty for the Pod's name.
    #[serde(default)]
    pub hostname: String,
    /// The additional entries of the file /etc/hosts of the containers.
    #[serde(default)]
    pub hosts: Hosts,
    /// Whether the Pod is in the network of its node.
    #[serde(default)]
    pub host_network: bool,
    /// The ports of its node that lead to it, if it has a network of its own.
    #[serde(default)]
    pub host_ports: Vec<HostPort>,
    /// The kernel parameters of the Pod's namespaces.
    #[serde(default)]
    pub sysctls: BTreeMap<String, String>,
    /// The QoS class of the Pod; empty if it is not known.
    #[serde(default)]
    pub qos_class: String,
    /// The CPU that its containers request together, in thousandths of a core.
    #[serde(default)]
    pub millicpu_share: i64,
    /// The resources of the Pod as a whole, if it has any.
    #[serde(default)]
    pub resources: Option<PodResources>,
    /// The volumes of the Pod. Never persisted, because they contain secrets.
    #[serde(skip)]
    pub volumes: Vec<Volume>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            namespace: String::new(),
            name: String::new(),
            uid: String::new(),
            ip: Ipv4Addr::UNSPECIFIED,
            hostname: String::new(),
            hosts: Hosts::default(),
            host_network: false,
            host_ports: Vec::new(),
            sysctls: BTreeMap::new(),
            qos_class: String::new(),
            millicpu_share: 0,
            resources: None,
            volumes: Vec::new(),
        }
    }
}

impl SandboxConfig {
    /// Returns the key of the Pod.
    pub fn pod(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Returns the host name of the containers.
    pub fn hostname(&self) -> &str {
        match self.hostname.as_str() {
            "" => &self.name,
            named => named,
        }
    }
}

/// A port of a node that leads to a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// The address of the node at which it is; `None` for its InternalIP.
    pub ip: Option<Ipv4Addr>,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The number on the node.
    pub port: u16,
    /// The number in the Pod.
    pub container_port: u16,
}

/// The configuration of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContainerConfig {
    /// The attempt.
    pub id: ContainerId,
    /// Image, as named in the Pod's spec.
    pub image: String,
    /// Overrides the image's entrypoint unless empty.
    pub command: Vec<String>,
    /// Overrides the image's arguments unless empty.
    #[serde(default)]
    pub args: Vec<String>,
    /// The complete environment.
    pub env: Vec<(String, String)>,
    /// Working directory; empty for the image's, or the sandbox's directory in the process runtime.
    pub working_dir: String,
    /// Backoff to apply after this attempt ends.
    pub backoff: Duration,
    /// The number of restarts of all containers of its Pod before this attempt.
    #[serde(default)]
    pub round: u32,
    /// Image pull policy.
    #[serde(default)]
    pub pull: Pull,
    /// Resource requests and limits.
    #[serde(default)]
    pub resources: ResourceRequirements,
    /// The limits of its Pod as a whole; `None` if the Pod has no resources of its own.
    #[serde(default)]
    pub pod: Option<PodResources>,
    /// The score by which the kernel chooses it when memory is short, -1000 to 1000; `None` for the runtime's default.
    #[serde(default)]
    pub oom_score_adj: Option<i64>,
    /// Security settings.
    #[serde(default)]
    pub security: Security,
    /// Log limits.
    #[serde(default)]
    pub log: LogLimits,
    /// The terminal and stdin.
    #[serde(default)]
    pub console: Console,
    /// Signal to stop it with; empty for the image's.
    #[serde(default)]
    pub stop_signal: String,
    /// The place of its termination message.
    #[serde(default)]
    pub termination_message: TerminationMessage,
    /// The resolver configuration of its Pod; `None` for that of the node.
    #[serde(default)]
    pub dns: Option<Dns>,
    /// The processes that it sees.
    #[serde(default)]
    pub processes: Processes,
    /// The mounts. Never persisted, because they contain secrets.
    #[serde(skip)]
    pub mounts: Vec<Mount>,
}

impl ContainerConfig {
    /// Returns the configuration without what may contain secrets: the environment, and the command line, in which
    /// variables are expanded.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        Self {
            command: Vec::new(),
            args: Vec::new(),
            env: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns the whole command line; empty if only the image defines it.
    pub fn line(&self) -> Vec<String> {
        match self.command.as_slice() {
            [] => Vec::new(),
            command => [command, &self.args].concat(),
        }
    }
}

/// The processes that a container sees.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Processes {
    /// The container's own processes.
    #[default]
    Own,
    /// The Pod's processes.
    OfPod,
    /// The processes of another container of the Pod.
    Of(ContainerId),
}

/// The console of a container's own process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Console {
    /// Keep stdin open for clients that attach.
    pub stdin: bool,
    /// Close stdin when the first such client leaves.
    pub stdin_once: bool,
    /// Give it a terminal.
    pub tty: bool,
}

/// The place of a container's termination message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TerminationMessage {
    /// Path of a file; empty for none.
    pub path: String,
    /// Use the end of the log if the file is empty and the container has failed.
    pub falls_back_to_logs: bool,
}

/// An image pull policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pull {
    /// Pull before each start.
    Always,
    /// Pull if the image is not present.
    #[default]
    IfNotPresent,
    /// Never pull.
    Never,
}

/// Origin of the image of a started container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageOrigin {
    /// The runtime uses no images.
    Unused,
    /// The image was present.
    Present,
    /// The image was pulled for this container.
    Pulled(Pulled),
}

/// Statistics of an image pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Duration of the pull.
    pub took: Duration,
    /// Duration of the pull including the wait for other pulls.
    pub waited: Duration,
    /// Size of the image.
    pub bytes: i64,
}

/// Resource limits of a container or a Pod; zero for unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Relative CPU share under contention, in thousandths of a core.
    pub millicpu_share: i64,
    /// CPU limit, in thousandths of a core.
    pub millicpu: i64,
    /// Memory limit, in bytes.
    pub memory: i64,
}

impl Limits {
    /// Returns the limits that follow from the requests and limits of a container.
    pub fn of(resources: &ResourceRequirements) -> Self {
        let limit = |name| resources.limits.get(name);
        let amount = |found: Option<&Quantity>| {
            found.and_then(|quantity| Amount::parse(&quantity.string).ok())
        };
        let share = resources.requests.get("cpu").or(limit("cpu"));
        Self {
            millicpu_share: amount(share).map_or(0, Amount::millis),
            millicpu: amount(limit("cpu")).map_or(0, Amount::millis),
            memory: amount(limit("memory")).map_or(0, Amount::value),
        }
    }
}

impl Limits {
    /// Returns the limits, with those of `default` where there are none.
    #[must_use]
    pub fn or(self, default: Self) -> Self {
        let choose = |own: i64, default: i64| if own > 0 { own } else { default };
        Self {
            millicpu_share: choose(self.millicpu_share, default.millicpu_share),
            millicpu: choose(self.millicpu, default.millicpu),
            memory: choose(self.memory, default.memory),
        }
    }

    /// Returns the limits that allow what either of two allows.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        let larger = |one: i64, other: i64| match one.min(other) {
            ..=0 => 0,
            _ => one.max(other),
        };
        Self {
            millicpu_share: self.millicpu_share.max(other.millicpu_share),
            millicpu: larger(self.millicpu, other.millicpu),
            memory: larger(self.memory, other.memory),
        }
    }
}

/// The limits that a Pod has as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodResources {
    /// The limits of its containers together.
    pub all: Limits,
    /// The limits of containers without limits of their own.
    pub each: Limits,
}

impl PodResources {
    /// Returns what allows all that either of two allows.
    #[must_use]
    pub fn raised_to(self, other: Self) -> Self {
        Self {
            all: self.all.raised_to(other.all),
            each: self.each.raised_to(other.each),
        }
    }
}

/// Limits of a container's log. The defaults are the kubelet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// Size in bytes at which a file is rotated.
    pub max_size: u64,
    /// Maximum number of files, the current one included; at least two.
    pub max_files: u32,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            max_size: 10 << 20,
            max_files: 5,
        }
    }
}

/// Security settings of a container that differ from the runtime's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// User; `None` for the image's.
    pub run_as_user: Option<i64>,
    /// Group; `None` for the image's.
    pub run_as_group: Option<i64>,
    /// Refuse to start as root.
    pub run_as_non_root: bool,
    /// Supplemental groups.
    pub supplemental_groups: Vec<i64>,
    /// Mount the root file system read-only.
    pub read_only: bool,
    /// Set `no_new_privs`.
    pub no_new_privileges: bool,
    /// Require the runtime's default seccomp profile.
    pub seccomp: bool,
    /// Require the runtime's default AppArmor profile.
    pub app_armor: bool,
    /// Capabilities to add.
    pub add: Vec<String>,
    /// Capabilities to drop.
    pub drop: Vec<String>,
}

impl Security {
    /// Checks `runAsNonRoot`. `default_user` is the user of the image or the runtime: a number or a name, optionally
    /// with a group; empty for root. `pod` is the Pod's label in messages, see [`pod_label`](super::pod_label).
    ///
    /// # Errors
    /// The kubelet's message, if the container would run as root or its user cannot be verified.
    pub fn verify_non_root(
        &self,
        default_user: &str,
        pod: &str,
        container: &str,
    ) -> Result<(), String> {
        let place = format!("(pod: {pod:?}, container: {container})");
        let default_user = default_user.split(':').next().unwrap_or_default();
        let numeric = match default_user {
            "" => Ok(0),
            user => user.parse::<i64>(),
        };
        match (self.run_as_non_root, self.run_as_user, numeric) {
            (true, Some(0), _) => Err(format!(
                "container's runAsUser breaks non-root policy {place}"
            )),
            (true, None, Ok(0)) => Err(format!(
                "container has runAsNonRoot and image will run as root {place}"
            )),
            (true, None, Err(_)) => Err(format!(
                "container has runAsNonRoot and image has non-numeric user ({default_user}), cannot verify user is non-root {place}"
            )),
            _ => Ok(()),
        }
    }
}

/// A volume of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Its name in the Pod's spec.
    pub name: String,
    /// Type and content.
    pub kind: VolumeKind,
    /// The group that owns its files.
    pub group: Option<u32>,
}

/// Type and content of a volume.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeKind {
    /// An empty directory.
    Empty,
    /// An empty directory in memory, limited to this many bytes; zero for unlimited.
    Memory(i64),
    /// A path of the machine.
    Host(HostPath),
    /// The content of an image, which its mounts name.
    Image,
    /// A directory of files, mounted read-only.
    Files {
        /// The files.
        files: Vec<File>,
        /// Whether to keep them in memory instead of on disk.
        secret: bool,
    },
}

/// A path of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPath {
    /// The path.
    pub path: String,
    /// The allowed directory that the path is below, or the path itself. Links below it do not lead out of it.
    pub root: String,
    /// Whether to create a directory there if there is nothing.
    pub create: bool,
}

/// An image whose content is a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageVolume {
    /// The image, as named in the Pod's spec.
    pub reference: String,
    /// Image pull policy.
    pub pull: Pull,
    /// Name of the engine's volume with its content, once that is known.
    pub volume: String,
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path relative to the volume.
    pub path: String,
    /// Content.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// The user that owns it; `None` for root.
    pub user: Option<u32>,
}

/// A mount of a volume in a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mount {
    /// Name of the volume.
    pub volume: String,
    /// Path in the container.
    pub path: String,
    /// The path of the machine that is mounted, if the volume is one.
    pub host: Option<HostPath>,
    /// The image that is mounted, if the volume is one.
    pub image: Option<ImageVolume>,
    /// Whether the container may only read it.
    pub read_only: bool,
    /// The part of the volume that is mounted; empty for all of it.
    pub sub_path: String,
    /// Whether the volume consists of files that only the agent writes.
    pub files: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed_and_the_cpu_share_follows_the_request() {
        let mut resources = ResourceRequirements::default();
        let limits = &mut resources.limits;
        limits.insert("cpu".into(), Quantity::new("1500m"));
        limits.insert("memory".into(), Quantity::new("64Mi"));
        let expected = Limits {
            millicpu_share: 1500,
            millicpu: 1500,
            memory: 64 << 20,
        };
        assert_eq!(Limits::of(&resources), expected);
        let requests = &mut resources.requests;
        requests.insert("cpu".into(), Quantity::new("100m"));
        assert_eq!(Limits::of(&resources).millicpu_share, 100);
    }

    /// Checks F7.
    #[test]
    fn a_container_that_must_not_be_root_is_refused_in_the_kubelets_words() {
        let verdict = |run_as_user, image| {
            let security = Security {
                run_as_user,
                run_as_non_root: true,
                ..Security::default()
            };
            let verdict = security.verify_non_root(image, "web_shop(5be0)", "main");
            verdict.err().unwrap_or_default()
        };
        let place = "(pod: \"web_shop(5be0)\", container: main)";
        let breaks = format!("container's runAsUser breaks non-root policy {place}");
        assert_eq!(verdict(Some(0), "1000"), breaks);
        let root = format!("container has runAsNonRoot and image will run as root {place}");
        assert_eq!(
            [verdict(None, ""), verdict(None, "0:5")],
            [root.clone(), root]
        );
        let named = format!(
            "container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root {place}"
        );
        assert_eq!(verdict(None, "nginx:nginx"), named);
        assert_eq!(
            [verdict(Some(7), "root"), verdict(None, "1000:0")],
            ["", ""]
        );
    }
}
