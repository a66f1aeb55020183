//! Archives of the files of volumes, with the modes, users and groups that the kubelet gives them.

use std::collections::BTreeSet;
use std::io;

use jiff::Timestamp;

use crate::File;

/// Adds files and the directories that they are in.
pub fn add_files(
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

/// Adds a symbolic link.
pub fn add_link(builder: &mut tar::Builder<Vec<u8>>, path: &str, target: &str) -> io::Result<()> {
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

/// Returns the archive of a version of a volume, with paths relative to the directory of the version.
pub fn of_version(files: &[File], group: Option<u32>) -> io::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(Vec::new());
    add_files(&mut builder, "", files, group)?;
    builder.into_inner()
}

/// Permissions that the owning group of a writable volume gets.
pub const RW_MASK: u32 = 0o660;
/// Permissions that the owning group of a read-only volume gets.
pub const RO_MASK: u32 = 0o440;
/// Permissions added to directories: access, and setgid so that new files inherit the group.
const DIRECTORY_MASK: u32 = 0o2110;

/// Mode and group of a file or directory, as the kubelet sets them for `fsGroup`.
#[derive(Clone, Copy)]
pub struct Ownership {
    pub mode: u32,
    pub group: Option<u32>,
}

impl Ownership {
    /// Returns those of a directory; the group of its volume gets the permissions of `mask`.
    pub fn folder(mode: u32, mask: u32, group: Option<u32>) -> Self {
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

/// Adds a directory.
pub fn add_directory(
    builder: &mut tar::Builder<Vec<u8>>,
    path: &str,
    ownership: Ownership,
) -> io::Result<()> {
    let mut header = ownership.header();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    builder.append_data(&mut header, path, io::empty())
}

/// Adds a file.
pub fn add_file(
    builder: &mut tar::Builder<Vec<u8>>,
    folder: &str,
    file: &File,
    group: Option<u32>,
) -> io::Result<()> {
    let path = format!("{folder}{}", file.path.trim_start_matches('/'));
    let mut header = Ownership::file(file.mode, group).header();
    header.set_uid(file.user.unwrap_or_default().into());
    header.set_size(u64::try_from(file.content.len()).unwrap_or_default());
    builder.append_data(&mut header, path, file.content.as_slice())
}
