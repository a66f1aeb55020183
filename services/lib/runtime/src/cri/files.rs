//! The files of Pods on this machine.
//!
//! ```text
//! <state>/pods/<uid>/etc-hosts, resolv.conf             mounted in its containers
//! <state>/pods/<uid>/<container>-<attempt>.message      the termination message
//! <state>/volumes/<uid>/<volume>                        its volumes
//! <state>/mounts/<uid>/<container>/<attempt>/<n>        parts of volumes, while a container starts
//! <logs>/<namespace>_<pod>_<uid>/<container>/<attempt>.log
//! ```

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use k8s_cri::v1::{Mount, MountPropagation};
use setpoint_host::private;

use crate::bind::Bind;
use crate::hosts::overwrite;
use crate::resolv_conf::node_file;
use crate::sub_path::{Bound, bind, bind_recursive, clean};
use crate::termination::MAX_MESSAGE;
use crate::volumes::{Volumes, remove_dir};
use crate::{ContainerConfig, ContainerId, RecursiveReadOnly, SandboxConfig, hosts, resolv_conf};

/// Names of the files of a Pod.
const HOSTS: &str = "etc-hosts";
const RESOLV_CONF: &str = "resolv.conf";

/// The directories of the files of Pods.
pub struct Files {
    state: PathBuf,
    logs: PathBuf,
    /// The volumes of Pods.
    pub volumes: Volumes,
}

impl Files {
    /// Returns those of a node with these directories.
    pub fn new(state: &Path, logs: &Path) -> Self {
        Self {
            state: state.to_owned(),
            logs: logs.to_owned(),
            volumes: Volumes::of(state),
        }
    }

    /// Unmounts what an agent of this node has left that was killed while it started a container.
    ///
    /// # Errors
    /// If something cannot be unmounted.
    pub fn clean(&self) -> io::Result<()> {
        clean(&self.state.join("mounts"))
    }

    fn of_pod(&self, uid: &str) -> PathBuf {
        self.state.join("pods").join(uid)
    }

    /// Returns the directory of the logs of a Pod.
    pub fn logs_of(&self, config: &SandboxConfig) -> PathBuf {
        let SandboxConfig {
            namespace,
            name,
            uid,
            ..
        } = config;
        self.logs.join(format!("{namespace}_{name}_{uid}"))
    }

    /// Makes the directories and the volumes of a Pod.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn create(&self, config: &SandboxConfig) -> io::Result<()> {
        private::create_dir_all(&self.of_pod(&config.uid))?;
        fs::create_dir_all(self.logs_of(config))?;
        self.volumes.create(&config.uid, &config.volumes)
    }

    /// Writes the hosts file of a Pod.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn write_hosts(&self, config: &SandboxConfig) -> io::Result<()> {
        let node = match config.host_network {
            true => Some(fs::read_to_string(hosts::PATH)?),
            false => None,
        };
        let (name, ip) = (config.hostname(), config.ip);
        let text = config.hosts.file(name, ip, node.as_deref());
        overwrite(&self.of_pod(&config.uid).join(HOSTS), text.as_bytes())
    }

    /// Makes the files of a container, and returns what it mounts: these, and its volumes.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn binds(&self, config: &ContainerConfig, host_network: bool) -> io::Result<Vec<Bind>> {
        let folder = self.of_pod(&config.id.uid);
        let own = |name: &str, target: &str| Bind {
            source: folder.clone(),
            host: None,
            sub_path: name.to_owned(),
            target: target.to_owned(),
            read_only: false,
            volume: name.to_owned(),
            propagates: false,
            recursive_read_only: RecursiveReadOnly::Disabled,
        };
        let mut binds = self.volumes.binds(config);
        let is_free = |path: &str| config.mounts.iter().all(|mount| mount.path != path);
        if is_free(hosts::PATH) && folder.join(HOSTS).is_file() {
            binds.push(own(HOSTS, hosts::PATH));
        }
        if let (Some(dns), true) = (&config.dns, is_free(resolv_conf::PATH)) {
            let text = dns.file(&node_file(!host_network)?);
            overwrite(&folder.join(RESOLV_CONF), text.as_bytes())?;
            binds.push(own(RESOLV_CONF, resolv_conf::PATH));
        }
        let message = &config.termination_message;
        if !message.path.is_empty() {
            let name = message_file(&config.id);
            let path = folder.join(&name);
            File::create(&path)?;
            // Any user of the container may write it.
            fs::set_permissions(&path, Permissions::from_mode(0o666))?;
            binds.push(own(&name, &message.path));
        }
        Ok(binds)
    }

    /// Makes what a container mounts available at paths that no container can replace, and returns the mounts. What is
    /// returned besides is needed until the container has started. Mounts are read-only with all that is mounted below
    /// them where they ask for that and the runtime `recurses`.
    ///
    /// # Errors
    /// With the message about a volume that cannot be mounted.
    pub fn mounts(
        &self,
        id: &ContainerId,
        binds: &[Bind],
        recurses: bool,
    ) -> Result<(Vec<Mount>, Vec<Bound>), String> {
        let folder = self.state.join("mounts").join(id.to_string());
        let mut bound = Vec::new();
        let mut mounts = Vec::new();
        for (index, wanted) in binds.iter().enumerate() {
            let made = made(wanted, &folder, index);
            let made = made.map_err(|error| wanted.refused(&id.name, &error))?;
            mounts.push(Mount {
                container_path: wanted.target.clone(),
                host_path: made.path().display().to_string(),
                readonly: wanted.read_only,
                propagation: propagation(wanted).into(),
                recursive_read_only: recurses && is_recursive(wanted),
                ..Mount::default()
            });
            bound.push(made);
        }
        Ok((mounts, bound))
    }

    /// Returns the path of a container's log.
    pub fn log(&self, sandbox: &SandboxConfig, id: &ContainerId) -> PathBuf {
        self.logs_of(sandbox).join(log_path(id))
    }

    /// Makes the directory of a container's log, which the runtime does not.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn create_log_folder(&self, sandbox: &SandboxConfig, id: &ContainerId) -> io::Result<()> {
        fs::create_dir_all(self.logs_of(sandbox).join(&id.name))
    }

    /// Returns the termination message of a container; empty if it has left none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn message(&self, id: &ContainerId) -> io::Result<Vec<u8>> {
        let path = self.of_pod(&id.uid).join(message_file(id));
        let mut file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let length = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX);
        let start = file.metadata()?.len().saturating_sub(length);
        file.seek(SeekFrom::Start(start))?;
        let mut end = Vec::new();
        file.take(length).read_to_end(&mut end)?;
        Ok(end)
    }

    /// Removes the log and the message of a container.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove_container(&self, sandbox: &SandboxConfig, id: &ContainerId) -> io::Result<()> {
        let folder = self.logs_of(sandbox).join(&id.name);
        for file in super::rotation::files(&folder, id.attempt)? {
            remove_file(&file)?;
        }
        remove_file(&self.of_pod(&id.uid).join(message_file(id)))
    }

    /// Removes everything of a Pod.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove(&self, config: &SandboxConfig) -> io::Result<()> {
        self.volumes.remove(&config.uid)?;
        remove_dir(&self.of_pod(&config.uid))?;
        remove_dir(&self.logs_of(config))
    }
}

/// Mounts what a container mounts at a path of this machine, by its descriptor.
fn made(wanted: &Bind, folder: &Path, index: usize) -> io::Result<Bound> {
    let opened = wanted.open()?;
    let name = index.to_string();
    match wanted.host.is_some() && wanted.sub_path.is_empty() {
        // With what is mounted below, as the kubelet mounts paths of the machine.
        true => Bound::new(&opened, folder, &name, bind_recursive),
        false => Bound::new(&opened, folder, &name, bind),
    }
}

/// Returns whether what is mounted in a volume later appears in the container.
const fn propagation(wanted: &Bind) -> MountPropagation {
    match wanted.propagates {
        true => MountPropagation::PropagationHostToContainer,
        false => MountPropagation::PropagationPrivate,
    }
}

/// Returns whether a mount asks to be read-only with all that is mounted below it. As in the kubelet, this takes one
/// that is read-only, and below which nothing appears later.
fn is_recursive(wanted: &Bind) -> bool {
    let asks = wanted.recursive_read_only != RecursiveReadOnly::Disabled;
    asks && wanted.read_only && !wanted.propagates
}

/// Returns the path of a container's log in the directory of its Pod.
pub fn log_path(id: &ContainerId) -> String {
    format!("{}/{}.log", id.name, id.attempt)
}

fn message_file(id: &ContainerId) -> String {
    format!("{}-{}.message", id.name, id.attempt)
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
