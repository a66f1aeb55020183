//! Images with a few programs of Debian's static busybox, as archives.

use std::process::Command;

use serde_json::json;
use tar::{Builder, EntryType, Header};

/// The programs of the image, besides `busybox` itself, which has more.
const APPLETS: [&str; 15] = [
    "sh", "true", "sleep", "cat", "echo", "ls", "mount", "grep", "dd", "touch", "stat", "hostname",
    "stty", "setsid", "readlink",
];
/// The default command, which sleeps until SIGTERM.
const SLEEP: &str = "trap 'exit 0' TERM; sleep 1000000 & wait";

/// Returns the files of an image; `mark` is the content of `/srv/mark`.
///
/// # Panics
/// If busybox is not installed.
pub fn busybox_files(mark: &str) -> Builder<Vec<u8>> {
    let found = Command::new("sh")
        .args(["-c", "command -v busybox"])
        .output();
    let path = String::from_utf8(found.unwrap().stdout).unwrap();
    let busybox =
        std::fs::read(path.trim()).expect("busybox-static is installed; see tests/prepare");
    let mut archive = Builder::new(Vec::new());
    append(&mut archive, "bin/busybox", &busybox, 0o755);
    for applet in APPLETS {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        archive
            .append_link(&mut header, format!("bin/{applet}"), "busybox")
            .unwrap();
    }
    for (folder, mode) in [("tmp/", 0o1777), ("etc/", 0o755), ("proc/", 0o755)] {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(mode);
        header.set_size(0);
        archive
            .append_data(&mut header, folder, std::io::empty())
            .unwrap();
    }
    append(&mut archive, "srv/mark", mark.as_bytes(), 0o644);
    archive
}

/// Returns an image of this name in the format of `docker save`. Its default command sleeps until SIGTERM. An image
/// with a `mark` of its own shares no layer with others.
///
/// # Panics
/// If busybox is not installed.
pub fn busybox_image(name: &str, mark: &str) -> Vec<u8> {
    let layer = busybox_files(mark).into_inner().unwrap();
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/bin:/bin"],
            "Cmd": ["sh", "-c", SLEEP],
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", sha256(&layer))] },
    });
    let manifest = json!([{
        "Config": "config.json",
        "RepoTags": [name],
        "Layers": ["layer.tar"],
    }]);
    let mut archive = Builder::new(Vec::new());
    for (name, content) in [
        ("config.json", config.to_string().into_bytes()),
        ("layer.tar", layer),
        ("manifest.json", manifest.to_string().into_bytes()),
    ] {
        append(&mut archive, name, &content, 0o644);
    }
    archive.into_inner().unwrap()
}

fn append(archive: &mut Builder<Vec<u8>>, path: &str, content: &[u8], mode: u32) {
    let mut header = Header::new_gnu();
    header.set_mode(mode);
    header.set_size(content.len().try_into().unwrap());
    archive.append_data(&mut header, path, content).unwrap();
}

fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
