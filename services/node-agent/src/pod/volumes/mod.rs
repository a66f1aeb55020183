//! Resolves the volumes and mounts of a Pod.

pub mod account;
mod claim;
mod mount;
mod projection;
mod token;
mod update;

use std::collections::BTreeSet;
use std::path::{Component, Path};

use setpoint_controller::Client;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{
    EmptyDirVolumeSource, HostPathVolumeSource, PersistentVolumeClaimVolumeSource, Pod,
    Volume as Declared, VolumeSource,
};
use setpoint_runtime::{HostPath, Volume, VolumeKind};

use self::projection::DEFAULT_MODE;
use crate::pod::container_config::security;
use crate::pod::downward::Placement;
use crate::pod::environment::Error;
use crate::pod::ephemeral;
use crate::pod::world::WaitingReason;

pub use self::claim::is_name;
pub use self::token::Tokens;
pub use self::update::{INTERVAL, Updates};

/// The sources of a Pod's volumes.
pub struct Sources<'a> {
    /// The client that reads referenced objects.
    pub gateway: Client,
    /// The tokens in use.
    pub tokens: &'a Tokens,
    /// The paths of the machine below which Pods may mount.
    pub host_paths: &'a [String],
    /// The directory of the node's own persistent volumes, if it keeps any.
    pub local_path: Option<&'a Path>,
    /// Whether containers run on an engine that can mount images.
    pub has_engine: bool,
    /// The Pod.
    pub pod: &'a Pod,
    /// The node-side values of its downward API.
    pub placement: &'a Placement,
}

impl Sources<'_> {
    /// Resolves the volumes that the Pod declares.
    ///
    /// # Errors
    /// If a source that is not optional does not exist, or the type of a volume is not supported.
    pub async fn volumes(&self) -> Result<Vec<Volume>, Error> {
        let mut volumes = Vec::new();
        for declared in &self.pod.spec.volumes {
            volumes.push(self.volume(declared).await?);
        }
        Ok(volumes)
    }

    /// Resolves the volumes whose files follow objects, or have tokens that expire.
    ///
    /// # Errors
    /// As [`Self::volumes`].
    pub async fn files(&self) -> Result<Vec<Volume>, Error> {
        let mut volumes = Vec::new();
        for declared in self
            .pod
            .spec
            .volumes
            .iter()
            .filter(|volume| is_files(volume))
        {
            volumes.push(self.volume(declared).await?);
        }
        Ok(volumes)
    }

    async fn volume(&self, declared: &Declared) -> Result<Volume, Error> {
        let (name, kind) = (declared.name.clone(), self.kind(declared).await?);
        let shared = matches!(kind, VolumeKind::Host(_) | VolumeKind::Image);
        let group = group(self.pod).filter(|_| !shared);
        Ok(Volume { name, kind, group })
    }

    /// Resolves the type and content of a volume.
    async fn kind(&self, declared: &Declared) -> Result<VolumeKind, Error> {
        let source = &declared.volume_source;
        if let Some(empty) = &source.empty_dir {
            return Ok(empty_dir(empty));
        }
        if let Some(host) = self.host(declared).await? {
            return Ok(VolumeKind::Host(host));
        }
        if source.image.is_some() && self.has_engine {
            return Ok(VolumeKind::Image);
        }
        if !is_files(declared) {
            let message = format!(
                "the type of volume {:?} is not supported on this node",
                declared.name
            );
            return Err(config_error(message));
        }
        let files = self.files_of(source).await;
        files.map_err(|error| set_up_failed(&declared.name, error))
    }

    /// Resolves the files of a volume that has any.
    async fn files_of(&self, source: &VolumeSource) -> Result<VolumeKind, Error> {
        let mode = |mode: Option<i32>| mode.unwrap_or(DEFAULT_MODE);
        let (files, secret) = if let Some(map) = &source.config_map {
            let (name, optional) = (&map.local_object_reference.name, map.optional);
            let mode = mode(map.default_mode);
            let files = self.config_map_files(name, optional, &map.items, mode);
            (files.await?, false)
        } else if let Some(secret) = &source.secret {
            let (name, optional) = (&secret.secret_name, secret.optional);
            let mode = mode(secret.default_mode);
            let files = self.secret_files(name, optional, &secret.items, mode);
            (files.await?, true)
        } else if let Some(projected) = &source.projected {
            (self.projected_files(projected).await?, true)
        } else {
            let downward = source.downward_api.clone().unwrap_or_default();
            let mode = mode(downward.default_mode);
            (self.downward_files(&downward.items, mode)?, true)
        };
        Ok(VolumeKind::Files { files, secret })
    }

    /// Returns the path of the machine that a volume stands for; `None` if it is no such volume.
    async fn host(&self, declared: &Declared) -> Result<Option<HostPath>, Error> {
        let source = &declared.volume_source;
        if let Some(host) = &source.host_path {
            return self.host_path(declared, host).map(Some);
        }
        if let Some(claim) = &source.persistent_volume_claim {
            return self.claimed(claim).await.map(Some);
        }
        if source.ephemeral.is_some() {
            let claim_name = format!("{}-{}", self.pod.metadata.name, declared.name);
            let claim = PersistentVolumeClaimVolumeSource {
                claim_name,
                read_only: false,
            };
            return self.claimed(&claim).await.map(Some);
        }
        Ok(None)
    }

    fn host_path(
        &self,
        declared: &Declared,
        source: &HostPathVolumeSource,
    ) -> Result<HostPath, Error> {
        let path = &source.path;
        let root = allowed_root(self.host_paths, path).ok_or_else(|| {
            config_error(format!(
                "hostPath {path:?} of volume {:?} is not allowed on this node: its setting host_paths names the paths that are",
                declared.name
            ))
        })?;
        let kind = source.r#type.as_deref().unwrap_or_default();
        Ok(HostPath {
            path: path.clone(),
            root,
            create: ["", "DirectoryOrCreate"].contains(&kind),
        })
    }
}

/// Returns the path of `allowed` that a path is or is below; `None` for one with `..`. Of several it is the shortest,
/// because a Pod may replace the others by links.
fn allowed_root(allowed: &[String], path: &str) -> Option<String> {
    let absolute = Path::new(path).is_absolute();
    let path = Some(Path::new(path)).filter(|_| absolute)?;
    let climbs = path.components().any(|part| part == Component::ParentDir);
    let roots = allowed.iter().filter(|root| path.starts_with(root));
    let shortest = roots.min_by_key(|root| Path::new(root).components().count());
    let root = shortest.filter(|_| !climbs)?;
    // Written alike, if they are the same path.
    Some(match path == Path::new(root) {
        true => path.display().to_string(),
        false => root.clone(),
    })
}

/// Returns the group that owns the files of a Pod's volumes.
fn group(pod: &Pod) -> Option<u32> {
    let context = pod.spec.security_context.as_ref()?;
    u32::try_from(context.fs_group?).ok()
}

/// Returns the user that owns tokens: the one that all containers of a Pod run as, if each of them names it (upstream's
/// `FsUserFrom`).
fn user(pod: &Pod) -> Option<u32> {
    let spec = &pod.spec;
    let added = ephemeral::containers(spec);
    let containers = spec.init_containers.iter().chain(&spec.containers);
    let users = containers
        .map(|container| security(spec, container).run_as_user)
        .chain(added.map(|container| security(spec, &container).run_as_user));
    let users: Option<BTreeSet<_>> = users.collect();
    let users = users.filter(|users| users.len() == 1)?;
    users.into_iter().next()?.try_into().ok()
}

/// Returns whether a volume consists of files that only the agent writes.
fn is_files(declared: &Declared) -> bool {
    let source = &declared.volume_source;
    source.config_map.is_some()
        || source.secret.is_some()
        || source.projected.is_some()
        || source.downward_api.is_some()
}

fn empty_dir(empty: &EmptyDirVolumeSource) -> VolumeKind {
    let limit = empty.size_limit.as_ref();
    let limit = limit.and_then(|limit| Amount::parse(&limit.string).ok());
    match empty.medium.as_str() {
        "Memory" => VolumeKind::Memory(limit.map_or(0, Amount::value)),
        _ => VolumeKind::Empty,
    }
}

/// Adds the volume to an error, in the words of the kubelet.
fn set_up_failed(volume: &str, error: Error) -> Error {
    match error {
        Error::Config(waiting) => config_error(format!(
            "MountVolume.SetUp failed for volume {volume:?} : {}",
            waiting.message
        )),
        gateway => gateway,
    }
}

fn config_error(message: String) -> Error {
    Error::Config(WaitingReason::config(message))
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{
        Container, EphemeralContainer, PodSecurityContext, SecurityContext,
    };

    use super::*;

    fn runs_as(user: Option<i64>) -> Option<SecurityContext> {
        user.map(|user| SecurityContext {
            run_as_user: Some(user),
            ..SecurityContext::default()
        })
    }

    /// Returns a Pod whose containers run as these users, `None` for that of the Pod.
    fn pod_of(own: Option<i64>, containers: &[Option<i64>]) -> Pod {
        let container = |user: &Option<i64>| Container {
            security_context: runs_as(*user),
            ..Container::default()
        };
        let mut pod = Pod::default();
        pod.spec.containers = containers.iter().map(container).collect();
        pod.spec.security_context = own.map(|user| PodSecurityContext {
            run_as_user: Some(user),
            ..PodSecurityContext::default()
        });
        pod
    }

    /// Checks RF10.
    #[test]
    fn an_error_of_a_volume_of_files_names_the_volume_in_the_words_of_the_kubelet() {
        let error = config_error("secret \"absent\" not found".to_owned());
        let message = set_up_failed("keys", error).to_string();
        let expected = r#"MountVolume.SetUp failed for volume "keys" : secret "absent" not found"#;
        assert_eq!(message, expected);
    }

    #[test]
    fn tokens_belong_to_the_user_that_all_containers_name() {
        for (own, containers, expected) in [
            (None, &[Some(7), Some(7)][..], Some(7)),
            (Some(7), &[None, Some(7)], Some(7)),
            (Some(0), &[None], Some(0)),
            (None, &[Some(7), None], None),
            (Some(8), &[None, Some(7)], None),
        ] {
            assert_eq!(user(&pod_of(own, containers)), expected, "{containers:?}");
        }
        let mut debugged = pod_of(None, &[Some(7)]);
        let mut added = EphemeralContainer::default();
        added.ephemeral_container_common.security_context = runs_as(Some(8));
        debugged.spec.ephemeral_containers.push(added);
        assert_eq!(user(&debugged), None);
    }

    /// Checks K14.
    #[test]
    fn a_path_of_the_machine_is_mounted_only_where_the_settings_allow_it() {
        let allowed = ["/srv".to_owned()];
        let root = |path: &str| allowed_root(&allowed, path);
        assert_eq!(root("/srv").as_deref(), Some("/srv"));
        assert_eq!(root("/srv/a/b").as_deref(), Some("/srv"));
        for denied in ["/", "/srvx", "/srv/../etc", "srv/a", "/etc"] {
            assert_eq!(root(denied), None, "{denied}");
        }
        assert_eq!(allowed_root(&[], "/srv"), None);
    }

    /// Checks DG18: of two allowed paths, a Pod may replace the one that is below the other.
    #[test]
    fn a_path_is_resolved_beneath_the_shortest_allowed_path() {
        let allowed = ["/srv/a".to_owned(), "/srv".to_owned()];
        assert_eq!(allowed_root(&allowed, "/srv/a/b").as_deref(), Some("/srv"));
        assert_eq!(allowed_root(&allowed, "/srv/").as_deref(), Some("/srv/"));
    }
}
