//! Reads the files of an image from the export of a container that was never started. Pure but for the streams.

use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use tar::EntryType;

/// Copies an exported file system, without what the engine adds to that of a container, and without device files.
pub fn copy(exported: impl Read, content: impl Write) -> io::Result<()> {
    let mut archive = tar::Archive::new(exported);
    let mut builder = tar::Builder::new(content);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        let link = entry.link_name()?.map(std::borrow::Cow::into_owned);
        let (kind, size) = (entry.header().entry_type(), entry.size());
        if is_of_engine(&path, kind, size, link.as_deref()) {
            continue;
        }
        let mut header = entry.header().clone();
        match (kind, link) {
            (EntryType::Symlink, Some(target)) => {
                builder.append_link(&mut header, &path, within(&path, &target))?;
            }
            (EntryType::Link, Some(target)) => builder.append_link(&mut header, &path, target)?,
            (EntryType::Regular | EntryType::Directory, _) => {
                header.set_size(size);
                builder.append_data(&mut header, &path, &mut entry)?;
            }
            _ => {}
        }
    }
    builder.into_inner()?.flush()?;
    // The exporter pads the archive.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map(|_| ())
}

/// Returns whether the engine has made a file for its containers.
fn is_of_engine(path: &Path, kind: EntryType, size: u64, link: Option<&Path>) -> bool {
    match path.to_str().map(|path| path.trim_matches('/')) {
        Some("" | "." | ".dockerenv" | "dev/console" | "dev/pts" | "dev/shm") => true,
        Some("etc/hostname" | "etc/hosts" | "etc/resolv.conf") => {
            kind == EntryType::Regular && size == 0
        }
        Some("etc/mtab") => link == Some(Path::new("/proc/mounts")),
        _ => false,
    }
}

/// Returns the target of a symbolic link: the path from the root of the image if it climbs above that, as the kernel
/// would resolve it in a container of the image. The engine refuses other links of that kind.
fn within(path: &Path, target: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(Path::new(""));
    let mut parts: Vec<_> = parent.components().collect();
    let mut climbs = false;
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => return target.to_owned(),
            Component::ParentDir => climbs |= parts.pop().is_none(),
            Component::Normal(_) => parts.push(part),
            Component::CurDir => {}
        }
    }
    match climbs {
        true => Path::new("/").join(parts.into_iter().collect::<PathBuf>()),
        false => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: EntryType, size: usize) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o755);
        header.set_size(size.try_into().unwrap());
        header
    }

    #[test]
    fn what_the_engine_adds_to_a_container_is_left_out() {
        let mut image = tar::Builder::new(Vec::new());
        let mut file = |path: &str, content: &str| {
            let mut header = header(EntryType::Regular, content.len());
            image
                .append_data(&mut header, path, content.as_bytes())
                .unwrap();
        };
        file(".dockerenv", "");
        file("etc/hosts", "");
        file("etc/hostname", "mine");
        file("data.json", "{}");
        file(&"deep/".repeat(60), "long");
        let mut folder = header(EntryType::Directory, 0);
        image
            .append_data(&mut folder, "dev/pts/", io::empty())
            .unwrap();
        let mut device = header(EntryType::Char, 0);
        image
            .append_data(&mut device, "dev/null", io::empty())
            .unwrap();
        let mut link = header(EntryType::Symlink, 0);
        image
            .append_link(&mut link, "etc/mtab", "/proc/mounts")
            .unwrap();
        let mut link = header(EntryType::Symlink, 0);
        image
            .append_link(&mut link, "bin/up", "../../../etc/passwd")
            .unwrap();
        let mut copied = Vec::new();
        copy(image.into_inner().unwrap().as_slice(), &mut copied).unwrap();
        let mut archive = tar::Archive::new(copied.as_slice());
        let left = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let link = entry.link_name().unwrap();
            let link = link.map(|link| link.display().to_string());
            (entry.path().unwrap().display().to_string(), link)
        });
        let expected = [
            ("etc/hostname".to_owned(), None),
            ("data.json".to_owned(), None),
            ("deep/".repeat(60).trim_end_matches('/').to_owned(), None),
            ("bin/up".to_owned(), Some("/etc/passwd".to_owned())),
        ];
        let left: Vec<_> = left
            .map(|(path, link)| (path.trim_end_matches('/').to_owned(), link))
            .collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn an_archive_that_is_cut_is_an_error() {
        let mut image = tar::Builder::new(Vec::new());
        let content = vec![7; 4096];
        let mut file = header(EntryType::Regular, content.len());
        image
            .append_data(&mut file, "data", content.as_slice())
            .unwrap();
        let whole = image.into_inner().unwrap();
        assert!(copy(&whole[..2048], io::sink()).is_err());
    }

    #[test]
    fn a_link_stays_within_the_image() {
        for (path, target, expected) in [
            ("etc/alternatives/vi", "../../bin/vi", "../../bin/vi"),
            ("etc/vi", "../../bin/../vi", "/vi"),
            ("etc/vi", "../../bin/vi", "/bin/vi"),
            ("vi", "a/../../x", "/x"),
            ("vi", "..", "/"),
            ("a/vi", "/usr/../bin/vi", "/usr/../bin/vi"),
            ("a/vi", "./../b/vi", "./../b/vi"),
        ] {
            let got = within(Path::new(path), Path::new(target));
            assert_eq!(got, Path::new(expected), "{path} {target}");
        }
    }
}
