//! The file /etc/hosts of Pods whose containers have mounts of their own.

use std::fs;
use std::io;

use super::Processes;
use crate::bind::Bind;
use crate::hosts::{PATH, overwrite};
use crate::{ContainerConfig, RecursiveReadOnly, SandboxConfig};

/// Name of the file in the directory of its Pod.
const NAME: &str = "etc-hosts";
/// Name of its mount, as in the kubelet.
const MOUNT: &str = "k8s-managed-etc-hosts";

impl Processes {
    /// Writes the file of a Pod. It has the entries of this machine if containers are in its network.
    pub(super) fn write_hosts(&self, config: &SandboxConfig) -> io::Result<()> {
        if !self.shared.mounts {
            return Ok(());
        }
        let shares = config.host_network || self.shared.network.is_none();
        let node = match fs::read_to_string(PATH) {
            Ok(node) => Some(node),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let node = node.filter(|_| shares);
        let (name, ip) = (config.hostname(), config.ip);
        let text = config.hosts.file(name, ip, node.as_deref());
        let path = self.sandbox_folder(&config.uid).join(NAME);
        overwrite(&path, text.as_bytes())
    }

    /// Returns the mount of the file in a container; `None` if the container mounts another there, or its Pod has no
    /// file.
    pub(super) fn hosts_bind(&self, config: &ContainerConfig) -> Option<Bind> {
        let source = self.sandbox_folder(&config.id.uid);
        let replaced = config.mounts.iter().any(|mount| mount.path == PATH);
        let exists = self.shared.mounts && source.join(NAME).is_file();
        (exists && !replaced).then(|| Bind {
            source,
            host: None,
            sub_path: NAME.to_owned(),
            target: PATH.to_owned(),
            read_only: false,
            volume: MOUNT.to_owned(),
            propagates: false,
            recursive_read_only: RecursiveReadOnly::Disabled,
        })
    }
}
