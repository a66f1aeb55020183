//! The volume with token, CA and namespace of a Pod's ServiceAccount.

use setpoint_proto::core::{Container, Pod, Volume as Declared};
use setpoint_runtime::{Volume, VolumeKind};

use super::{Sources, is_files};
use crate::pod::environment::Error;

/// The path at which clients look for the files of their account.
const PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The variable that names the directory with these files for a container without mounts.
pub const VARIABLE: &str = "SETPOINT_SERVICE_ACCOUNT";

/// Returns the name of the volume that a container mounts for its account, if it does.
pub fn volume_of(container: &Container) -> Option<&str> {
    let mut mounts = container.volume_mounts.iter();
    let mount = mounts.find(|mount| mount.mount_path.trim_end_matches('/') == PATH)?;
    Some(&mount.name)
}

/// Returns the volumes that containers of a Pod mount for its account.
fn declared(pod: &Pod) -> impl Iterator<Item = &Declared> {
    let volumes = pod.spec.volumes.iter().filter(|volume| is_files(volume));
    volumes.filter(|volume| {
        let spec = &pod.spec;
        let mut containers = spec.init_containers.iter().chain(&spec.containers);
        containers.any(|container| volume_of(container) == Some(&volume.name))
    })
}

/// Returns whether containers of a Pod mount files of its account.
pub fn has_files(pod: &Pod) -> bool {
    declared(pod).next().is_some()
}

impl Sources<'_> {
    /// Resolves the volumes of the account alone, for containers of the agent's own user: nobody else owns their files.
    ///
    /// # Errors
    /// As [`Self::volumes`].
    pub async fn account_files(&self) -> Result<Vec<Volume>, Error> {
        let mut volumes = Vec::new();
        for declared in declared(self.pod) {
            let mut volume = self.volume(declared).await?;
            volume.group = None;
            if let VolumeKind::Files { files, .. } = &mut volume.kind {
                files.iter_mut().for_each(|file| file.user = None);
            }
            volumes.push(volume);
        }
        Ok(volumes)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{ProjectedVolumeSource, VolumeMount};

    use super::*;

    fn pod(path: &str) -> Pod {
        let mut pod = Pod::default();
        let mut volume = Declared {
            name: "access".into(),
            ..Declared::default()
        };
        volume.volume_source.projected = Some(ProjectedVolumeSource::default());
        pod.spec.volumes.push(volume);
        let mount = VolumeMount {
            name: "access".into(),
            mount_path: path.into(),
            ..VolumeMount::default()
        };
        pod.spec.containers.push(Container {
            volume_mounts: vec![mount],
            ..Container::default()
        });
        pod
    }

    #[test]
    fn the_volume_of_the_account_is_known_by_its_path() {
        for (path, expected) in [
            (PATH, Some("access")),
            (
                "/var/run/secrets/kubernetes.io/serviceaccount/",
                Some("access"),
            ),
            ("/etc/tokens", None),
        ] {
            let pod = pod(path);
            assert_eq!(volume_of(&pod.spec.containers[0]), expected);
            assert_eq!(has_files(&pod), expected.is_some(), "{path}");
        }
    }
}
