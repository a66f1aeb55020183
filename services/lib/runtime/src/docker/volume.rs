//! A Pod's volumes as named volumes of the engine, filled through a container that is never started.

use std::collections::HashMap;
use std::io;

use bollard::body_full;
use bollard::errors::Error;
use bollard::models::VolumeCreateRequest;
use bollard::query_parameters::{
    ListVolumesOptionsBuilder, RemoveVolumeOptions, UploadToContainerOptionsBuilder,
};
use jiff::Timestamp;

use super::engine::Engine;
use super::identity::{Labels, filter};
use super::ignore_not_found;
use crate::archive::{Ownership, RO_MASK, RW_MASK, add_directory, add_file, add_files, add_link};
use crate::{File, Mount, Volume, VolumeKind, layout};

/// Directory of the volumes in the containers of the agent.
const MOUNT_ROOT: &str = "volumes";

/// Returns the engine's name of a volume.
pub fn name(uid: &str, volume: &str) -> String {
    format!("k8s_{uid}_{volume}")
}

/// Returns the engine's name of the volume of a mount.
pub fn of_mount(uid: &str, mount: &Mount) -> String {
    let image = mount.image.as_ref();
    image.map_or_else(|| name(uid, &mount.volume), |image| image.volume.clone())
}

/// Returns the path of a volume in the containers of the agent.
pub fn mount_path(volume: &Volume) -> String {
    path(&volume.name)
}

/// Returns the path of the volume with this name in the containers of the agent.
pub fn path(name: &str) -> String {
    format!("/{MOUNT_ROOT}/{name}")
}

/// Creates the volumes that do not exist.
pub async fn create(
    engine: &Engine,
    uid: &str,
    volumes: &[Volume],
    labels: &Labels,
) -> Result<(), Error> {
    for volume in volumes.iter().filter(|volume| is_own(volume)) {
        let request = VolumeCreateRequest {
            name: Some(name(uid, &volume.name)),
            driver_opts: driver_options(&volume.kind),
            labels: Some(labels.clone()),
            ..VolumeCreateRequest::default()
        };
        engine.client.create_volume(request).await?;
    }
    Ok(())
}

/// Returns whether the engine keeps the volume for the Pod alone.
pub fn is_own(volume: &Volume) -> bool {
    !matches!(volume.kind, VolumeKind::Host(_) | VolumeKind::Image)
}

fn driver_options(kind: &VolumeKind) -> Option<HashMap<String, String>> {
    let size = match kind {
        VolumeKind::Memory(0) | VolumeKind::Files { secret: true, .. } => None,
        VolumeKind::Memory(size) => Some(format!("size={size}")),
        _ => return None,
    };
    let mut options = HashMap::from(
        [("type", "tmpfs"), ("device", "tmpfs")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    options.extend(size.map(|size| ("o".to_owned(), size)));
    Some(options)
}

/// Makes empty volumes writable for everyone and writes files into the others, through a carrier.
pub async fn fill(engine: &Engine, carrier: &str, volumes: &[Volume]) -> Result<(), Error> {
    if volumes.is_empty() {
        return Ok(());
    }
    let archive = archive(volumes).map_err(|err| Error::IOError { err })?;
    upload(engine, carrier, archive).await
}

/// Copies files into volumes, through a carrier.
pub async fn copy(engine: &Engine, carrier: &str, files: &[File]) -> Result<(), Error> {
    let mut builder = tar::Builder::new(Vec::new());
    let added = files
        .iter()
        .try_for_each(|file| add_file(&mut builder, "", file, None));
    let archive = added.and_then(|()| builder.into_inner());
    upload(
        engine,
        carrier,
        archive.map_err(|err| Error::IOError { err })?,
    )
    .await
}

async fn upload(engine: &Engine, container: &str, archive: Vec<u8>) -> Result<(), Error> {
    let options = UploadToContainerOptionsBuilder::default().path("/").build();
    let body = body_full(archive.into());
    engine
        .client
        .upload_to_container(container, Some(options), body)
        .await
}

fn archive(volumes: &[Volume]) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    for volume in volumes {
        let folder = format!("{MOUNT_ROOT}/{}/", volume.name);
        match &volume.kind {
            VolumeKind::Empty | VolumeKind::Memory(_) => {
                let ownership = Ownership::folder(0o777, RW_MASK, volume.group);
                add_directory(&mut builder, &folder, ownership)?;
            }
            VolumeKind::Host(_) | VolumeKind::Image => {}
            VolumeKind::Files { files, .. } => {
                let ownership = Ownership::folder(0o755, RO_MASK, volume.group);
                add_directory(&mut builder, &folder, ownership)?;
                add_version(&mut builder, &folder, files, volume.group)?;
            }
        }
    }
    builder.into_inner()
}

/// Adds files as the first version of a volume, with all of its links.
fn add_version(
    builder: &mut tar::Builder<Vec<u8>>,
    folder: &str,
    files: &[File],
    group: Option<u32>,
) -> io::Result<()> {
    let version = layout::version(Timestamp::now());
    let inner = format!("{folder}{version}/");
    add_directory(builder, &inner, Ownership::folder(0o755, RO_MASK, group))?;
    add_files(builder, &inner, files, group)?;
    add_link(builder, &format!("{folder}{}", layout::DATA), &version)?;
    for name in layout::links(files.iter().map(|file| file.path.as_str())) {
        add_link(
            builder,
            &format!("{folder}{name}"),
            &format!("{}/{name}", layout::DATA),
        )?;
    }
    Ok(())
}

/// Removes the volumes with these labels; returns their number.
pub async fn remove(client: &bollard::Docker, labels: &[(&str, &str)]) -> Result<usize, Error> {
    let options = ListVolumesOptionsBuilder::default()
        .filters(&filter(labels))
        .build();
    let found = client.list_volumes(Some(options)).await?.volumes;
    let found = found.unwrap_or_default();
    for volume in &found {
        let removed = client.remove_volume(&volume.name, None::<RemoveVolumeOptions>);
        ignore_not_found(removed.await)?;
    }
    Ok(found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns path, mode and group of each archive entry of the volumes `scratch` and `config`.
    fn entries(group: Option<u32>) -> Vec<(String, u32, u64)> {
        let file = File {
            path: "conf.d/a.conf".into(),
            content: b"x=1".to_vec(),
            mode: 0o400,
            user: None,
        };
        let files = VolumeKind::Files {
            files: vec![file],
            secret: false,
        };
        let volumes = [("scratch", VolumeKind::Empty), ("config", files)];
        let volumes = volumes.map(|(name, kind)| Volume {
            name: name.into(),
            kind,
            group,
        });
        let archive = archive(&volumes).unwrap();
        let mut archive = tar::Archive::new(archive.as_slice());
        let entries = archive.entries().unwrap().map(Result::unwrap);
        let entry = |entry: tar::Entry<'_, &[u8]>| {
            let header = entry.header();
            let path = entry.path().unwrap().display().to_string();
            // The name of a version is its time.
            let path = match path.split_once("..2") {
                Some((before, rest)) => {
                    let (_, file) = rest.split_once('/').unwrap_or(("", ""));
                    format!("{before}..V/{file}")
                }
                None => path,
            };
            (path, header.mode().unwrap(), header.gid().unwrap())
        };
        entries.map(entry).collect()
    }

    fn with_group(entries: &[(&str, u32)], group: u64) -> Vec<(String, u32, u64)> {
        let entries = entries.iter();
        let entries = entries.map(|(path, mode)| ((*path).to_owned(), *mode, group));
        entries.collect()
    }

    #[test]
    fn the_archive_has_every_directory_and_file_with_its_mode() {
        let expected = [
            ("volumes/scratch/", 0o777),
            ("volumes/config/", 0o755),
            ("volumes/config/..V/", 0o755),
            ("volumes/config/..V/conf.d/", 0o755),
            ("volumes/config/..V/conf.d/a.conf", 0o400),
            ("volumes/config/..data", 0o777),
            ("volumes/config/conf.d", 0o777),
        ];
        assert_eq!(entries(None), with_group(&expected, 0));
    }

    /// Checks K16.
    #[test]
    fn an_fs_group_owns_and_may_read_every_entry() {
        let expected = [
            ("volumes/scratch/", 0o2777),
            ("volumes/config/", 0o2755),
            ("volumes/config/..V/", 0o2755),
            ("volumes/config/..V/conf.d/", 0o2755),
            ("volumes/config/..V/conf.d/a.conf", 0o440),
        ];
        let entries = entries(Some(4242)).into_iter();
        let owned: Vec<_> = entries.filter(|(_, _, group)| *group == 4242).collect();
        assert_eq!(owned, with_group(&expected, 4242));
    }
}
