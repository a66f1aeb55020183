//! A Pod's volumes as named volumes of the engine, filled through the Pod's pause container.

use std::collections::{BTreeSet, HashMap};
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
use super::{ignore_not_found, layout};
use crate::runtime::{File, Volume, VolumeKind};

/// Directory of the volumes in the pause container.
const MOUNT_ROOT: &str = "volumes";

/// Returns the engine's name of a volume.
pub fn name(uid: &str, volume: &str) -> String {
    format!("k8s_{uid}_{volume}")
}

/// Returns the path of a volume in the pause container.
pub fn mount_path(volume: &Volume) -> String {
    format!("/{MOUNT_ROOT}/{}", volume.name)
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

/// Returns whether the engine keeps the volume, and not the machine itself.
fn is_own(volume: &Volume) -> bool {
    !matches!(volume.kind, VolumeKind::Host(_))
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

/// Makes empty volumes writable for everyone and writes files into the others. The pause container must be running,
/// because a tmpfs exists only while it is mounted.
pub async fn fill(engine: &Engine, pause: &str, volumes: &[Volume]) -> Result<(), Error> {
    if volumes.is_empty() {
        return Ok(());
    }
    let archive = archive(volumes).map_err(|err| Error::IOError { err })?;
    upload(engine, pause, archive).await
}

/// Copies files into a container that has not been started.
pub async fn copy(
    engine: &Engine,
    container: &str,
    files: &[File],
    group: Option<u32>,
) -> Result<(), Error> {
    let mut builder = tar::Builder::new(Vec::new());
    let added = files
        .iter()
        .try_for_each(|file| add_file(&mut builder, "", file, group));
    let archive = added.and_then(|()| builder.into_inner());
    upload(
        engine,
        container,
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
            VolumeKind::Host(_) => {}
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

fn add_files(
    builder: &mut tar::Builder<Vec<u8>>,
    folder: &str,
    files: &[File],
    group: Option<u32>,
) -> io::Result<()> {
    let ownership = Ownership::folder(0o755, RO_MASK, group);
    let mut made = BTreeSet::new();
    for file in files {
        for (end, _) in file.path.match_indices('/') {
            if made.insert(&file.path[..end]) {
                add_directory(
                    builder,
                    &format!("{folder}{}/", &file.path[..end]),
                    ownership,
                )?;
            }
        }
        add_file(builder, folder, file, group)?;
    }
    Ok(())
}

fn add_link(builder: &mut tar::Builder<Vec<u8>>, path: &str, target: &str) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_mode(0o777);
    header.set_mtime(now());
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    builder.append_link(&mut header, path, target)
}

/// Returns the time in seconds, for the modification times of files.
fn now() -> u64 {
    u64::try_from(Timestamp::now().as_second()).unwrap_or_default()
}

/// Returns the archive of a new version of a volume, with paths relative to the directory of the version.
pub fn version_archive(files: &[File], group: Option<u32>) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    add_files(&mut builder, "", files, group)?;
    builder.into_inner()
}

/// Permissions that the owning group of a writable volume gets.
const RW_MASK: u32 = 0o660;
/// Permissions that the owning group of a read-only volume gets.
const RO_MASK: u32 = 0o440;
/// Permissions added to directories: access, and setgid so that new files inherit the group.
const DIRECTORY_MASK: u32 = 0o2110;

/// Mode and group of a file or directory, as the kubelet sets them for `fsGroup`.
#[derive(Clone, Copy)]
struct Ownership {
    mode: u32,
    group: Option<u32>,
}

impl Ownership {
    fn folder(mode: u32, mask: u32, group: Option<u32>) -> Self {
        let mode = group.map_or(mode, |_| mode | mask | DIRECTORY_MASK);
        Self { mode, group }
    }

    fn file(mode: u32, group: Option<u32>) -> Self {
        let mode = group.map_or(mode, |_| mode | RO_MASK);
        Self { mode, group }
    }

    fn header(self) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_mode(self.mode);
        header.set_mtime(now());
        header.set_uid(0);
        header.set_gid(self.group.unwrap_or_default().into());
        header
    }
}

fn add_directory(
    builder: &mut tar::Builder<Vec<u8>>,
    path: &str,
    ownership: Ownership,
) -> io::Result<()> {
    let mut header = ownership.header();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    builder.append_data(&mut header, path, io::empty())
}

fn add_file(
    builder: &mut tar::Builder<Vec<u8>>,
    folder: &str,
    file: &File,
    group: Option<u32>,
) -> io::Result<()> {
    let path = format!("{folder}{}", file.path.trim_start_matches('/'));
    let mut header = Ownership::file(file.mode, group).header();
    header.set_size(u64::try_from(file.content.len()).unwrap_or_default());
    builder.append_data(&mut header, path, file.content.as_slice())
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
