//! The layout of a volume of files, as the kubelet's: all files are below `..data`, a link to the directory of
//! their version. To replace the link replaces all files at once.
//!
//! ```text
//! ..2026_11_24_08_40_00.000000001/key
//! ..data ─▶ ..2026_11_24_08_40_00.000000001
//! key ─▶ ..data/key
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The link to the newest version.
pub const DATA: &str = "..data";
/// The link that replaces it.
const NEW_DATA: &str = "..data_tmp";
const SETGID: u32 = 0o2000;

/// Returns the name of the directory of a new version.
pub fn version(now: Timestamp) -> String {
    let time = now.to_zoned(TimeZone::UTC);
    let nanos = now.subsec_nanosecond();
    format!("..{}.{nanos:09}", time.strftime("%Y_%m_%d_%H_%M_%S"))
}

/// Returns the names of the links to files: the first part of each path.
pub fn links<'a>(paths: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let first = |path: &'a str| path.split('/').find(|part| !part.is_empty());
    paths.into_iter().filter_map(first).collect()
}

/// Replaces the files of a volume by those of an archive, unless they are the same. Returns whether they were replaced.
///
/// # Errors
/// If the volume cannot be written to. Its files are then as before.
pub fn publish(volume: &Path, version: &str, archive: impl Read) -> io::Result<bool> {
    let folder = volume.join(version);
    let unpacked = unpack(&folder, archive);
    let before = fs::read_link(volume.join(DATA)).ok();
    let replaced = unpacked.and_then(|()| {
        let same = before.as_ref().is_some_and(|before| {
            let old = content(&volume.join(before));
            old.is_ok_and(|old| content(&folder).is_ok_and(|new| new == old))
        });
        match same {
            true => Ok(false),
            false => switch(volume, version).map(|()| true),
        }
    });
    match replaced {
        Ok(true) => {
            link(volume, version)?;
            Ok(true)
        }
        Ok(false) => fs::remove_dir_all(&folder).map(|()| false),
        Err(error) => {
            // The next version removes its rest.
            let _ = fs::remove_dir_all(&folder);
            Err(error)
        }
    }
}

fn unpack(folder: &Path, archive: impl Read) -> io::Result<()> {
    fs::create_dir(folder)?;
    // A directory inherits the group of a volume, and that its files do.
    let inherited = folder.metadata()?.mode() & SETGID;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755 | inherited))?;
    let mut archive = tar::Archive::new(archive);
    archive.set_preserve_permissions(true);
    // Without root, all files are this user's, as which all containers run.
    archive.set_preserve_ownerships(nix::unistd::Uid::effective().is_root());
    archive.unpack(folder)
}

fn switch(volume: &Path, version: &str) -> io::Result<()> {
    let new = volume.join(NEW_DATA);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    symlink(version, &new)?;
    fs::rename(new, volume.join(DATA))
}

/// Adds the links to files that are new, and removes those to files that are gone and the older versions.
fn link(volume: &Path, version: &str) -> io::Result<()> {
    let names = names(&volume.join(version))?;
    for name in &names {
        let link = volume.join(name);
        if link.symlink_metadata().is_err() {
            symlink(Path::new(DATA).join(name), link)?;
        }
    }
    for old in self::names(volume)? {
        let path = volume.join(&old);
        match old.to_string_lossy().as_ref() {
            DATA => {}
            name if name == version => {}
            name if name.starts_with("..") => fs::remove_dir_all(path)?,
            _ if names.contains(&old) => {}
            _ => fs::remove_file(path)?,
        }
    }
    Ok(())
}

fn names(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let entries = fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().into())).collect()
}

/// Path, mode, user and group, and content of all files and directories in a directory.
type Content = Vec<(PathBuf, u32, (u32, u32), Vec<u8>)>;

fn content(root: &Path) -> io::Result<Content> {
    let mut found = Content::new();
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let whole = root.join(&path);
        let meta = whole.metadata()?;
        let bytes = match meta.is_dir() {
            true => {
                left.extend(names(&whole)?.into_iter().map(|name| path.join(name)));
                Vec::new()
            }
            false => fs::read(&whole)?,
        };
        found.push((path, meta.mode(), (meta.uid(), meta.gid()), bytes));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            let own = fs::metadata("/proc/self").unwrap();
            header.set_uid(own.uid().into());
            header.set_gid(own.gid().into());
            header.set_size(content.len().try_into().unwrap());
            builder
                .append_data(&mut header, path, content.as_bytes())
                .unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn listed(volume: &Path) -> Vec<String> {
        let names = names(volume).unwrap().into_iter();
        names.map(|name| name.display().to_string()).collect()
    }

    #[test]
    fn all_files_of_a_volume_are_replaced_by_one_link() {
        let volume = tempfile::tempdir().unwrap();
        let publish = |version, files: &[(&str, &str)]| {
            publish(volume.path(), version, archive(files).as_slice()).unwrap()
        };
        assert!(publish("..1", &[("a", "1"), ("b/c", "1")]));
        assert_eq!(listed(volume.path()), ["..1", "..data", "a", "b"]);
        assert!(
            !publish("..2", &[("a", "1"), ("b/c", "1")]),
            "nothing has changed"
        );
        assert_eq!(listed(volume.path()), ["..1", "..data", "a", "b"]);
        let held = fs::canonicalize(volume.path().join("a")).unwrap();
        assert!(publish("..3", &[("a", "2"), ("d", "1")]));
        assert_eq!(listed(volume.path()), ["..3", "..data", "a", "d"]);
        let read = |name: &str| fs::read_to_string(volume.path().join(name)).unwrap();
        assert_eq!([read("a"), read("d")], ["2", "1"]);
        assert!(!held.exists());
    }

    #[test]
    fn an_archive_that_is_cut_changes_nothing() {
        let volume = tempfile::tempdir().unwrap();
        publish(volume.path(), "..1", archive(&[("a", "1")]).as_slice()).unwrap();
        let cut = &archive(&[("a", "2")])[..513];
        assert!(publish(volume.path(), "..2", cut).is_err());
        assert_eq!(listed(volume.path()), ["..1", "..data", "a"]);
    }

    #[test]
    fn a_version_is_named_after_its_time() {
        let now = "2026-11-24T08:40:00.5Z".parse().unwrap();
        assert_eq!(version(now), "..2026_11_24_08_40_00.500000000");
        assert_eq!(links(["a", "b/c", "/d"]), BTreeSet::from(["a", "b", "d"]));
    }
}
