//! What sandboxes and containers are made from.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_model::Key;

use super::ContainerId;

/// What a sandbox is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SandboxConfig {
    /// Namespace and name of the Pod.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Tells it from other Pods of that name.
    pub uid: String,
    /// The Pod's address: the one asked for, or the one that the runtime gave it.
    pub ip: Ipv4Addr,
    /// The host name of its containers; empty for the Pod's name.
    #[serde(default)]
    pub hostname: String,
    /// What its containers may mount. Never kept: there are secrets in it.
    #[serde(skip)]
    pub volumes: Vec<Volume>,
}

impl SandboxConfig {
    /// The Pod's key.
    pub fn pod(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }
}

/// What a container is started from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContainerConfig {
    /// Which attempt at which container.
    pub id: ContainerId,
    /// As the Pod's spec names it.
    pub image: String,
    /// The program, in place of the image's own.
    pub command: Vec<String>,
    /// The arguments, in place of the image's own.
    #[serde(default)]
    pub args: Vec<String>,
    /// All of its environment.
    pub env: Vec<(String, String)>,
    /// Where it runs; empty for the sandbox's own folder.
    pub working_dir: String,
    /// How long to rest after this attempt before the next.
    pub backoff: Duration,
    /// When to fetch the image.
    #[serde(default)]
    pub pull: Pull,
    /// How much it may use.
    #[serde(default)]
    pub limits: Limits,
    /// What it may do.
    #[serde(default)]
    pub security: Security,
    /// How much of what it writes is kept.
    #[serde(default)]
    pub log: LogLimits,
    /// The volumes that it sees. Never kept: there are secrets in them.
    #[serde(skip)]
    pub mounts: Vec<Mount>,
}

impl ContainerConfig {
    /// The whole command line; empty where only the image would say what to run.
    pub fn line(&self) -> Vec<String> {
        match self.command.as_slice() {
            [] => Vec::new(),
            command => [command, &self.args].concat(),
        }
    }
}

/// When to fetch an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pull {
    /// Before each start.
    Always,
    /// If it is not there.
    #[default]
    IfNotPresent,
    /// Not at all.
    Never,
}

/// How much a container may use; zero for what it wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Its share of the CPU where that is short, in thousandths.
    pub millicpu_share: i64,
    /// CPU, in thousandths.
    pub millicpu: i64,
    /// Memory, in bytes.
    pub memory: i64,
}

/// How much of what a container writes is kept. The defaults are the kubelet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    /// A file of this many bytes makes way for another.
    pub max_size: u64,
    /// How many files there are, the one that is written to included; two at least.
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

/// What a container may do, where it differs from the runtime's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Security {
    /// Its user; the image's unless it says.
    pub run_as_user: Option<i64>,
    /// Its group; the image's unless it says.
    pub run_as_group: Option<i64>,
    /// It does not start as root.
    pub run_as_non_root: bool,
    /// More groups.
    pub supplemental_groups: Vec<i64>,
    /// It cannot write to its own files.
    pub read_only: bool,
    /// It cannot become more than it is.
    pub no_new_privileges: bool,
    /// It does not start without the runtime's seccomp profile.
    pub seccomp: bool,
    /// It does not start without the runtime's AppArmor profile.
    pub app_armor: bool,
    /// Capabilities to add.
    pub add: Vec<String>,
    /// Capabilities to take away.
    pub drop: Vec<String>,
}

impl Security {
    /// Checks `runAsNonRoot` for a container whose image, or whose runtime, would run it as `default_user`: a number, a
    /// name, with or without a group, or empty for root. `pod` is as the kubelet names Pods in messages.
    ///
    /// # Errors
    /// The reason, in the kubelet's words, if the container would run as root, or nobody can tell.
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

/// A folder that the containers of a Pod share.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Its name in the Pod's spec.
    pub name: String,
    /// What it is.
    pub kind: VolumeKind,
    /// The group that may use it, and owns what is in it.
    pub group: Option<u32>,
}

/// What a volume is.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeKind {
    /// An empty folder.
    Empty,
    /// An empty folder in memory, of this many bytes at most; zero for as many as there are.
    Memory(i64),
    /// A folder of files that containers only read, in memory if they are secret.
    Files {
        /// Its files.
        files: Vec<File>,
        /// Are they not to touch a disk?
        secret: bool,
    },
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where in its volume.
    pub path: String,
    /// What is in it.
    pub content: Vec<u8>,
    /// Who may read it.
    pub mode: u32,
}

/// Where a container sees a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    /// The volume.
    pub volume: String,
    /// Where.
    pub path: String,
    /// It cannot write there.
    pub read_only: bool,
    /// These files alone, as they are now, and not the volume.
    pub copies: Vec<File>,
    /// The group that owns the copies.
    pub group: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
