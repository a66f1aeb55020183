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

/// What a container may do, where it differs from the runtime's own default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Security {
    /// `user` or `user:group`; empty for the image's.
    pub user: String,
    /// More groups.
    pub groups: Vec<String>,
    /// It cannot write to its own files.
    pub read_only: bool,
    /// It cannot become more than it is.
    pub no_new_privileges: bool,
    /// Capabilities to add.
    pub add: Vec<String>,
    /// Capabilities to take away.
    pub drop: Vec<String>,
}

/// A folder that the containers of a Pod share.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Its name in the Pod's spec.
    pub name: String,
    /// What it is.
    pub kind: VolumeKind,
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
}
