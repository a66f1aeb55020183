//! The file /etc/resolv.conf of Pods with a resolver configuration of their own.
//!
//! The engine writes another into containers of its networks, so each container has the Pod's file mounted over it. It
//! is in the volume of the termination messages.

use bollard::errors::Error as BollardError;
use bollard::models::{Mount, MountType};

use super::{Shared, termination, volume};
use crate::File;
use crate::dns::Dns;

/// Path of the file in containers.
pub const PATH: &str = "/etc/resolv.conf";
/// No termination message has this name: theirs end with the number of an attempt.
const NAME: &str = "resolv.conf";

impl Shared {
    /// Writes the file of a Pod, and returns its mount.
    pub(super) async fn resolv_conf(
        &self,
        uid: &str,
        pause: &str,
        dns: &Dns,
    ) -> Result<Mount, BollardError> {
        let base = self.read_file(pause, PATH).await?;
        let messages = termination::volume();
        let file = File {
            path: format!("{}/{NAME}", volume::mount_path(&messages)),
            content: dns.file(&String::from_utf8_lossy(&base)).into_bytes(),
            mode: 0o644,
            user: None,
        };
        self.copy_message(uid, file).await?;
        let name = volume::name(uid, &messages.name);
        let volume = self.engine.client.inspect_volume(&name).await?;
        Ok(Mount {
            typ: Some(MountType::BIND),
            source: Some(format!("{}/{NAME}", volume.mountpoint)),
            target: Some(PATH.to_owned()),
            ..Mount::default()
        })
    }
}
