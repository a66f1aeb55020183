//! The file /etc/resolv.conf of Pods whose containers have mounts of their own.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use super::mounts::Bind;
use super::{Processes, state_error};
use crate::hosts::overwrite;
use crate::{ContainerConfig, Dns, Error};

/// Path of the file in containers.
const PATH: &str = "/etc/resolv.conf";
/// The file with the name servers that systemd-resolved asks, of a machine whose own file names the loopback.
const RESOLVED: &str = "/run/systemd/resolve/resolv.conf";
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
        }))
    }
}

/// Returns the text of the machine's file; for Pods with networks of their own, that of systemd-resolved if the machine
/// asks name servers at its loopback, which these Pods do not reach.
fn node_file(own_network: bool) -> io::Result<String> {
    let text = fs::read_to_string(PATH)?;
    let servers = Dns::parse(&text).nameservers;
    let is_loopback = |text: &String| text.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    match own_network && !servers.is_empty() && servers.iter().all(is_loopback) {
        true => Ok(fs::read_to_string(RESOLVED).unwrap_or(text)),
        false => Ok(text),
    }
}
