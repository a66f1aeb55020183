//! The volumes of a Pod, with everything in them that the gateway has to say.

use std::collections::BTreeMap;

use setpoint_machinery::Gateway;
use setpoint_model::Key;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{
    ConfigMap, Container, EmptyDirVolumeSource, KeyToPath, Pod, ProjectedVolumeSource, Secret,
    Volume as Declared,
};

use crate::environment::{Error, found};
use crate::runtime::{File, Mount, Volume, VolumeKind};
use crate::world::Trouble;

/// Who may read a file, unless somebody says otherwise.
const MODE: i32 = 0o644;

/// What a ConfigMap or Secret has, by key.
type Data = BTreeMap<String, Vec<u8>>;

/// Everything that the containers of a Pod may mount.
///
/// # Errors
/// When a volume names something that is not there, or that no node of this kind can give.
pub async fn volumes(gateway: &Gateway, pod: &Pod) -> Result<Vec<Volume>, Error> {
    let mut volumes = Vec::new();
    for declared in &pod.spec.volumes {
        let name = declared.name.clone();
        let kind = kind(gateway, &pod.metadata.namespace, declared).await?;
        volumes.push(Volume { name, kind });
    }
    Ok(volumes)
}

/// Where a container sees them.
///
/// A part of a volume cannot be mounted by every engine: its files are copied as they are now, which for files that
/// only the gateway writes is what Kubernetes does, too.
///
/// # Errors
/// When it wants a part of a volume that containers write to.
pub async fn mounts(
    gateway: &Gateway,
    pod: &Pod,
    container: &Container,
) -> Result<Vec<Mount>, Error> {
    let mut mounts = Vec::new();
    for wanted in &container.volume_mounts {
        let declared = pod
            .spec
            .volumes
            .iter()
            .find(|volume| volume.name == wanted.name);
        let Some(declared) = declared else { continue };
        let files = is_files(declared);
        let mut copies = Vec::new();
        if !wanted.sub_path.is_empty() {
            if !files {
                let message = format!(
                    "subPath of volume {:?} is not supported on this node",
                    wanted.name
                );
                return Err(refused(message));
            }
            let kind = kind(gateway, &pod.metadata.namespace, declared).await?;
            copies = part(&kind, &wanted.sub_path, &wanted.mount_path);
        }
        mounts.push(Mount {
            volume: wanted.name.clone(),
            path: wanted.mount_path.clone(),
            read_only: wanted.read_only || files,
            copies,
        });
    }
    Ok(mounts)
}

fn is_files(declared: &Declared) -> bool {
    let source = &declared.volume_source;
    source.config_map.is_some() || source.secret.is_some() || source.projected.is_some()
}

/// The files below `sub_path`, as they are called where they are mounted.
fn part(kind: &VolumeKind, sub_path: &str, mount_path: &str) -> Vec<File> {
    let VolumeKind::Files { files, .. } = kind else {
        return Vec::new();
    };
    let below = files.iter().filter_map(|file| {
        let rest = file.path.strip_prefix(sub_path.trim_end_matches('/'))?;
        let path = match rest.is_empty() || rest.starts_with('/') {
            true => format!("{mount_path}{rest}"),
            false => return None,
        };
        Some(File {
            path,
            ..file.clone()
        })
    });
    below.collect()
}

async fn kind(
    gateway: &Gateway,
    namespace: &str,
    declared: &Declared,
) -> Result<VolumeKind, Error> {
    let source = &declared.volume_source;
    if let Some(empty) = &source.empty_dir {
        return Ok(in_memory(empty));
    }
    let projected = if let Some(map) = &source.config_map {
        let (name, optional) = (
            &map.local_object_reference.name,
            map.optional.unwrap_or_default(),
        );
        let data = config_map(gateway, namespace, name, optional).await?;
        (
            files(data, &map.items, map.default_mode.unwrap_or(MODE), optional)?,
            false,
        )
    } else if let Some(secret) = &source.secret {
        let optional = secret.optional.unwrap_or_default();
        let data = secret_data(gateway, namespace, &secret.secret_name, optional).await?;
        (
            files(
                data,
                &secret.items,
                secret.default_mode.unwrap_or(MODE),
                optional,
            )?,
            true,
        )
    } else if let Some(projected) = &source.projected {
        (all(gateway, namespace, projected).await?, true)
    } else {
        let message = format!(
            "volume {:?} is of a kind that this node does not have",
            declared.name
        );
        return Err(refused(message));
    };
    let (files, secret) = projected;
    Ok(VolumeKind::Files { files, secret })
}

fn in_memory(empty: &EmptyDirVolumeSource) -> VolumeKind {
    let limit = empty.size_limit.as_ref();
    let limit = limit.and_then(|limit| Amount::parse(&limit.string).ok());
    match empty.medium.as_str() {
        "Memory" => VolumeKind::Memory(limit.map_or(0, Amount::value)),
        _ => VolumeKind::Empty,
    }
}

async fn all(
    gateway: &Gateway,
    namespace: &str,
    projected: &ProjectedVolumeSource,
) -> Result<Vec<File>, Error> {
    let mode = projected.default_mode.unwrap_or(MODE);
    let mut all = Vec::new();
    for source in &projected.sources {
        if let Some(map) = &source.config_map {
            let (name, optional) = (
                &map.local_object_reference.name,
                map.optional.unwrap_or_default(),
            );
            let data = config_map(gateway, namespace, name, optional).await?;
            all.extend(files(data, &map.items, mode, optional)?);
        }
        if let Some(secret) = &source.secret {
            let (name, optional) = (
                &secret.local_object_reference.name,
                secret.optional.unwrap_or_default(),
            );
            let data = secret_data(gateway, namespace, name, optional).await?;
            all.extend(files(data, &secret.items, mode, optional)?);
        }
    }
    Ok(all)
}

async fn config_map(
    gateway: &Gateway,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Data, Error> {
    let map = gateway.get::<ConfigMap>(&Key::new(namespace, name)).await;
    let map = found(map, optional, "configmap", name)?.unwrap_or_default();
    let text = map
        .data
        .into_iter()
        .map(|(key, text)| (key, text.into_bytes()));
    let binary = map
        .binary_data
        .into_iter()
        .map(|(key, bytes)| (key, bytes.to_vec()));
    Ok(text.chain(binary).collect())
}

async fn secret_data(
    gateway: &Gateway,
    namespace: &str,
    name: &str,
    optional: bool,
) -> Result<Data, Error> {
    let secret = gateway.get::<Secret>(&Key::new(namespace, name)).await;
    let secret = found(secret, optional, "secret", name)?.unwrap_or_default();
    Ok(secret
        .data
        .into_iter()
        .map(|(key, bytes)| (key, bytes.to_vec()))
        .collect())
}

/// One file a key, or those that are listed, under the names that are listed.
fn files(
    mut data: Data,
    items: &[KeyToPath],
    mode: i32,
    optional: bool,
) -> Result<Vec<File>, Error> {
    let file = |path: &str, content, mode: i32| File {
        path: path.to_owned(),
        content,
        mode: u32::try_from(mode).unwrap_or_default(),
    };
    if items.is_empty() {
        return Ok(data
            .into_iter()
            .map(|(key, content)| file(&key, content, mode))
            .collect());
    }
    let mut files = Vec::new();
    for item in items {
        match data.remove(&item.key) {
            Some(content) => files.push(file(&item.path, content, item.mode.unwrap_or(mode))),
            None if optional => {}
            None => {
                return Err(refused(format!(
                    "references non-existent config key: {}",
                    item.key
                )));
            }
        }
    }
    Ok(files)
}

fn refused(message: String) -> Error {
    Error::Config(Trouble::config(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        [("a", "1"), ("b", "2")]
            .map(|(key, text)| (key.to_owned(), text.into()))
            .into()
    }

    fn item(key: &str, path: &str) -> KeyToPath {
        KeyToPath {
            key: key.into(),
            path: path.into(),
            mode: Some(0o400),
            ..KeyToPath::default()
        }
    }

    fn listed(files: &[File]) -> Vec<(&str, u32)> {
        files
            .iter()
            .map(|file| (file.path.as_str(), file.mode))
            .collect()
    }

    #[test]
    fn every_key_is_a_file_unless_some_are_listed() {
        let every = files(data(), &[], MODE, false).unwrap();
        assert_eq!(listed(&every), [("a", 0o644), ("b", 0o644)]);
        let some = files(data(), &[item("b", "conf/b.txt")], MODE, false).unwrap();
        assert_eq!(listed(&some), [("conf/b.txt", 0o400)]);
        assert!(files(data(), &[item("c", "c")], MODE, false).is_err());
        assert!(
            files(data(), &[item("c", "c")], MODE, true)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_part_of_a_volume_is_one_file_or_the_files_of_one_folder() {
        let items = [item("a", "conf/a"), item("b", "confuse")];
        let files = files(data(), &items, MODE, false).unwrap();
        let kind = VolumeKind::Files {
            files,
            secret: false,
        };
        assert_eq!(
            listed(&part(&kind, "conf", "/etc/x")),
            [("/etc/x/a", 0o400)]
        );
        assert_eq!(
            listed(&part(&kind, "confuse", "/etc/b")),
            [("/etc/b", 0o400)]
        );
    }
}
