//! Resolves volumes of PersistentVolumeClaims: from the claim to its PersistentVolume, and to a path of the machine.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use setpoint_model::{Key, placement};
use setpoint_proto::core::{
    Node, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimVolumeSource,
    PersistentVolumeSpec,
};
use setpoint_runtime::HostPath;

use super::{Sources, allowed_root, config_error};
use crate::pod::environment::{Error, optional_object};

/// The mode of a volume that the node makes: any user of a container may write to it.
const MODE: u32 = 0o777;

impl Sources<'_> {
    /// Returns the path of the machine that a claim stands for, and makes it if it is one of this node's own volumes.
    ///
    /// # Errors
    /// If the claim is not bound, or its volume is not one that this node may mount.
    pub(super) async fn claimed(
        &self,
        source: &PersistentVolumeClaimVolumeSource,
    ) -> Result<HostPath, Error> {
        let (namespace, name) = (&self.pod.metadata.namespace, &source.claim_name);
        let key = Key::new(namespace, name);
        let claim = self.gateway.get::<PersistentVolumeClaim>(&key).await;
        let claim = optional_object(claim, false, "persistentvolumeclaim", name)?;
        let claim = claim.unwrap_or_default();
        let refused = |why: &str| {
            let message = format!("error processing PVC {namespace}/{name}: {why}");
            config_error(message)
        };
        let volume = claim.spec.volume_name.as_str();
        if claim.status.phase != "Bound" || volume.is_empty() {
            return Err(refused("PVC is not bound"));
        }
        let key = Key::new("", volume);
        let found = self.gateway.get::<PersistentVolume>(&key).await;
        let found = optional_object(found, false, "persistentvolume", volume)?;
        let found = found.unwrap_or_default();
        let owner = found.spec.claim_ref.as_ref();
        if owner.is_none_or(|owner| owner.uid != claim.metadata.uid) {
            return Err(refused(&format!("PV {volume:?} is bound to another claim")));
        }
        if found.spec.volume_mode.as_deref() == Some("Block") {
            return Err(refused(
                "its volume has volumeMode Block, but is specified in volumeMounts",
            ));
        }
        self.check_node(volume, &found.spec).await?;
        let own = self.local_path.map(|folder| folder.join(volume));
        let (path, create) = path(&found.spec)
            .ok_or_else(|| refused("the type of its volume is not supported on this node"))?;
        let allowed = allowed_root(self.host_paths, path);
        let is_own = own.as_deref() == Some(Path::new(path)) && is_name(volume);
        let root = match allowed {
            Some(root) => root,
            // Pods write below it, but do not replace it.
            None if is_own => path.to_owned(),
            None => {
                return Err(refused(&format!(
                    "path {path:?} of PV {volume:?} is not allowed on this node: its setting host_paths names the paths that are"
                )));
            }
        };
        if is_own {
            let made = make(own.unwrap_or_default()).await;
            made.map_err(|error| refused(&format!("cannot create {path:?}: {error}")))?;
        }
        Ok(HostPath {
            path: path.to_owned(),
            root,
            create: create && !is_own,
        })
    }

    /// Checks the node affinity of a volume.
    async fn check_node(&self, volume: &str, spec: &PersistentVolumeSpec) -> Result<(), Error> {
        let affinity = spec.node_affinity.as_ref();
        let Some(required) = affinity.and_then(|affinity| affinity.required.as_ref()) else {
            return Ok(());
        };
        let name = &self.pod.spec.node_name;
        let node = self.gateway.get::<Node>(&Key::new("", name)).await?;
        let mut terms = required.node_selector_terms.iter();
        match terms.any(|term| placement::matches(term, name, &node.metadata.labels)) {
            true => Ok(()),
            false => Err(config_error(format!(
                "MountVolume.NodeAffinity check failed for volume {volume:?} : no matching NodeSelectorTerms"
            ))),
        }
    }
}

/// Returns the path of a volume, and whether it is made if there is nothing; `None` if it is none of a machine.
fn path(spec: &PersistentVolumeSpec) -> Option<(&str, bool)> {
    let source = &spec.persistent_volume_source;
    if let Some(host) = &source.host_path {
        let kind = host.r#type.as_deref().unwrap_or_default();
        return Some((&host.path, ["", "DirectoryOrCreate"].contains(&kind)));
    }
    let local = source.local.as_ref()?;
    Some((&local.path, false))
}

/// Returns whether a name is one part of a path.
pub fn is_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

async fn make(folder: PathBuf) -> io::Result<()> {
    let made = tokio::task::spawn_blocking(move || {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent)?;
        }
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
            Ok(()) => fs::set_permissions(&folder, Permissions::from_mode(MODE)),
        }
    });
    made.await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{HostPathVolumeSource, LocalVolumeSource};

    use super::*;

    #[test]
    fn only_volumes_of_a_machine_have_a_path() {
        let mut spec = PersistentVolumeSpec::default();
        assert_eq!(path(&spec), None);
        let source = &mut spec.persistent_volume_source;
        source.local = Some(LocalVolumeSource {
            path: "/srv".into(),
            ..LocalVolumeSource::default()
        });
        assert_eq!(path(&spec), Some(("/srv", false)));
        let source = &mut spec.persistent_volume_source;
        source.host_path = Some(HostPathVolumeSource {
            path: "/data".into(),
            r#type: Some("DirectoryOrCreate".into()),
        });
        assert_eq!(path(&spec), Some(("/data", true)));
    }

    #[test]
    fn a_name_with_a_separator_is_no_name() {
        assert!(is_name("pvc-1") && !is_name("a/b") && !is_name("..") && !is_name(""));
        assert!(!is_name("a/") && !is_name("/a"));
    }
}
