//! Container runtimes: the trait that each implements, modelled on the CRI.

mod archive;
mod bind;
mod cgroup;
mod config;
mod container;
pub mod container_cgroup;
#[cfg(feature = "contract")]
pub mod contract;
pub mod cri;
mod descendants;
pub mod dns;
pub mod docker;
mod error;
mod host_path;
mod hosts;
mod image_access;
mod image_gc;
mod image_pulls;
mod image_records;
mod image_reference;
mod image_service;
mod image_slots;
mod keyring;
mod kind;
mod layout;
pub mod log;
mod log_file;
mod obstacle;
pub mod process;
pub mod program;
mod resize;
mod resolv_conf;
mod sandbox;
pub mod simulated;
mod space;
pub mod streams;
mod sub_path;
mod table;
mod termination;
mod usage;
mod volumes;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_model::Key;
use setpoint_proto::core::{ContainerImage, ResourceRequirements};

pub use config::{
    Console, ContainerConfig, File, HostPath, HostPort, ImageOrigin, ImageVolume, Limits,
    LogLimits, Mount, PodResources, Processes, Profile, Pull, Pulled, RecursiveReadOnly,
    SandboxConfig, Security, TerminationMessage, Volume, VolumeKind,
};
pub use container::{Container, ContainerId, Exit, State};
pub use dns::{ClusterDns, Dns};
pub use error::Error;
pub use hosts::Hosts;
pub use image_reference::image_name;
pub use keyring::{Credential, Keyring, SecretRef};
pub use kind::Kind;
pub use log::{Log, LogOptions};
pub use obstacle::Obstacle;
pub use sandbox::{Sandbox, pod_label};
pub use space::{ContainerSpace, Space};
pub use streams::{Connection, Input, Inputs, Output, Outputs, Streams};
pub use usage::{DiskUsage, Reading};

/// Maximum size of a file of a volume that the agent reads, in bytes.
pub const MAX_FILE: usize = 1 << 20;

/// Enqueues a Pod for a reconcile because its state in the runtime changed.
///
/// It carries no information about the change, so that calls may be coalesced without loss.
pub type Wake = Arc<dyn Fn(&Key) + Send + Sync>;

/// A container runtime with one sandbox per Pod.
///
/// A value is a handle of the runtime, which is cheap to clone. Every call is idempotent. [`Runtime::sandboxes`]
/// returns the current state from memory, without I/O. State changes that were not requested call the [`Wake`] that the
/// runtime was created with.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// The scheme of its container ids, for example `process`.
    const NAME: &'static str;
    /// Whether containers run commands, so that an environment must be resolved.
    const RUNS_COMMANDS: bool;
    /// Whether containers run images and mount volumes. Otherwise a placeholder runs in place of a container without a
    /// command.
    const RUNS_IMAGES: bool;
    /// Whether the CPU usage of containers is simulated, so that there is none to read.
    const SIMULATES_LOAD: bool = false;

    /// Returns the images that are present; none if it uses no images.
    fn images(&self) -> impl Future<Output = Vec<ContainerImage>> + Send {
        std::future::ready(Vec::new())
    }

    /// Removes images that it has pulled, that no container uses, and whose pull was at least `min_age` ago, until
    /// `bytes` are freed. Returns the number of bytes freed.
    fn remove_images(&self, _bytes: u64, _min_age: Duration) -> impl Future<Output = u64> + Send {
        std::future::ready(0)
    }

    /// Returns what containers and volumes of the Pods with these uids hold of the node's disks, of those that can be
    /// read.
    fn disk_usage(&self, _pods: HashSet<String>) -> impl Future<Output = DiskUsage> + Send {
        std::future::ready(DiskUsage::default())
    }

    /// Reads a file of a volume of a Pod, of at most [`MAX_FILE`] bytes.
    fn read_file(
        &self,
        _uid: &str,
        _volume: &str,
        _path: &str,
    ) -> impl Future<Output = Result<Vec<u8>, Error>> + Send {
        let message = "this node has no files of volumes".to_owned();
        std::future::ready(Err(Error::Unsupported(message)))
    }

    /// Returns whether it mounts volumes in containers.
    fn mounts_volumes(&self) -> bool;

    /// Returns the sandboxes of all Pods with this name: usually one, two while a predecessor is being removed.
    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox>;

    /// Returns the state of a container, from memory; `None` if there is no such container.
    fn state(&self, id: &ContainerId) -> Option<State>;

    /// Returns all Pods that have a sandbox, including those created before the agent restarted.
    fn pods(&self) -> Vec<Key>;

    /// Returns whether Pods can be connected to its network (the condition `NetworkReady` of the CRI).
    ///
    /// # Errors
    /// With the reason, if they cannot.
    fn network_ready(&self) -> Result<(), Obstacle> {
        Ok(())
    }

    /// Returns whether a Pod has a network of its own, unless it asks for that of its node.
    fn has_pod_networks(&self) -> bool {
        Self::RUNS_IMAGES
    }

    /// Sets the addresses of Pods, as `a.b.c.d/n` (`UpdateRuntimeConfig` of the CRI).
    ///
    /// # Errors
    /// If the network cannot be made.
    fn set_pod_range(&self, _range: &str) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Creates a Pod's sandbox, or recreates a lost one.
    fn run_sandbox(&self, config: SandboxConfig) -> impl Future<Output = Result<(), Error>> + Send;

    /// Replaces the files of volumes of a running sandbox. Each volume changes at once.
    ///
    /// # Errors
    /// If the runtime mounts no volumes, or cannot change those of the sandbox.
    fn update_volumes(
        &self,
        uid: &str,
        volumes: Vec<Volume>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives the hosts file of a running sandbox these entries; `hostname` is the name of its Pod. Containers see the
    /// change at once.
    ///
    /// # Errors
    /// If there is no such sandbox, or its file cannot be written.
    fn update_hosts(
        &self,
        _uid: &str,
        _hostname: &str,
        _hosts: &Hosts,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Returns the directory of a volume with files where containers find it that have no mounts; `None` if they have.
    fn unmounted_folder(&self, _uid: &str, _volume: &str) -> Option<PathBuf> {
        None
    }

    /// Starts a container and returns the origin of its image. On return the container is starting, running, or has
    /// failed; see its state.
    fn start(
        &self,
        config: ContainerConfig,
    ) -> impl Future<Output = Result<ImageOrigin, Error>> + Send;

    /// Gives a running container other requests and limits, of which the runtime enforces those that it enforces at the
    /// start.
    ///
    /// # Errors
    /// If the container does not run, or cannot have these limits.
    fn resize(
        &self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Gives a running Pod other resources as a whole, and its containers without limits of their own the limits that
    /// follow. Returns whether the containers together are bounded by them.
    ///
    /// # Errors
    /// If the Pod does not run, or uses more.
    fn resize_pod(
        &self,
        _uid: &str,
        _resources: PodResources,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }

    /// Returns whether it bounds the containers of a Pod together.
    fn bounds_pods(&self) -> bool {
        false
    }

    /// Asks a container to stop and kills it after `grace`. Does not wait.
    fn stop(
        &self,
        id: &ContainerId,
        grace: Duration,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the log of a container.
    fn log(
        &self,
        id: &ContainerId,
        options: &LogOptions,
    ) -> impl Future<Output = Result<Log, Error>> + Send;

    /// Runs a command in a running container, with the container's environment, working directory, user and limits.
    /// Dropping the output before its end ends the command, as does the end of the container.
    fn exec(
        &self,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> impl Future<Output = Result<Outputs, Error>> + Send;

    /// Connects to the streams of a running container's own process. The output ends when the container ends, without
    /// [`Output::Exit`].
    fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> impl Future<Output = Result<Outputs, Error>> + Send;

    /// Opens a TCP connection to a port of a Pod, at its address.
    fn connect(
        &self,
        uid: &str,
        port: u16,
    ) -> impl Future<Output = Result<Connection, Error>> + Send;

    /// Opens a TCP connection to a port of the loopback of a Pod, as runtimes do for `port-forward` (`PortForward` of
    /// the CRI). A Pod that shares the loopback of its node is reached at its address.
    fn connect_loopback(
        &self,
        uid: &str,
        port: u16,
    ) -> impl Future<Output = Result<Connection, Error>> + Send {
        self.connect(uid, port)
    }

    /// Returns what the running containers have used so far, of those that can be read.
    fn readings(&self) -> impl Future<Output = HashMap<ContainerId, Reading>> + Send;

    /// Removes a container that has exited.
    fn remove(&self, id: &ContainerId) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes a sandbox whose containers have all exited.
    fn remove_sandbox(&self, uid: &str) -> impl Future<Output = Result<(), Error>> + Send;
}
