//! The file /etc/resolv.conf of Pods whose containers have mounts of their own.

use std::path::Path;

use super::{Processes, state_error};
use crate::bind::Bind;
use crate::hosts::overwrite;
use crate::resolv_conf::{PATH, node_file};
use crate::{ContainerConfig, Error, RecursiveReadOnly};

/// Name of the file in the directory of its Pod.
const NAME: &str = "resolv.conf";

impl Processes {
    /// Writes the file of a Pod, and returns its mount in a container; `None` if the container has that of the machine,
    /// or mounts another there.
    pub(super) fn resolv_conf_bind(&self, config: &ContainerConfig) -> Result<Option<Bind>, Error> {
        let uid = &config.id.uid;
        let replaced = config.mounts.iter().any(|mount| mount.path == PATH);
        let own_network = self.namespace_of(uid)?.is_some();
        let needed = own_network || config.dns.is_some();
        // A mount needs something to be mounted over.
        if !self.shared.mounts || replaced || !needed || !Path::new(PATH).exists() {
            return Ok(None);
        }
        let source = self.sandbox_folder(uid);
        let text = node_file(own_network).map(|node| match &config.dns {
            Some(dns) => dns.file(&node),
            None => node,
        });
        let written = text.and_then(|text| overwrite(&source.join(NAME), text.as_bytes()));
        written.map_err(|error| state_error(format!("resolv.conf of Pod {uid}"), error))?;
        Ok(Some(Bind {
            source,
            host: None,
            sub_path: NAME.to_owned(),
            target: PATH.to_owned(),
            read_only: false,
            volume: NAME.to_owned(),
            propagates: false,
            recursive_read_only: RecursiveReadOnly::Disabled,
        }))
    }
}
