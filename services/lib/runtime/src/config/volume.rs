//! Volumes of Pods, and their mounts in containers.

use serde::{Deserialize, Serialize};

use super::ImageVolume;

/// A volume of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Volume {
    /// Its name in the Pod's spec.
    pub name: String,
    /// Type and content.
    pub kind: VolumeKind,
    /// The group that owns its files.
    pub group: Option<u32>,
}

/// Type and content of a volume.
#[derive(Clone, Debug, PartialEq)]
pub enum VolumeKind {
    /// An empty directory.
    Empty,
    /// An empty directory in memory, limited to this many bytes; zero for unlimited.
    Memory(i64),
    /// A path of the machine.
    Host(HostPath),
    /// The content of an image, which its mounts name.
    Image,
    /// A directory of files, mounted read-only.
    Files {
        /// The files.
        files: Vec<File>,
        /// Whether to keep them in memory instead of on disk.
        secret: bool,
    },
}

/// A path of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPath {
    /// The path.
    pub path: String,
    /// The allowed directory that the path is below, or the path itself. Links below it do not lead out of it.
    pub root: String,
    /// Whether to create a directory there if there is nothing.
    pub create: bool,
}

/// A file of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path relative to the volume.
    pub path: String,
    /// Content.
    pub content: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
    /// The user that owns it; `None` for root.
    pub user: Option<u32>,
}

/// A mount of a volume in a container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mount {
    /// Name of the volume.
    pub volume: String,
    /// Path in the container.
    pub path: String,
    /// The path of the machine that is mounted, if the volume is one.
    pub host: Option<HostPath>,
    /// The image that is mounted, if the volume is one.
    pub image: Option<ImageVolume>,
    /// Whether the container may only read it.
    pub read_only: bool,
    /// The part of the volume that is mounted; empty for all of it.
    pub sub_path: String,
    /// Whether the volume consists of files that only the agent writes.
    pub files: bool,
    /// Whether what is mounted below the volume later appears in the container (`HostToContainer`).
    pub propagates: bool,
    /// Whether the container may not write what is mounted below the volume either.
    pub recursive_read_only: RecursiveReadOnly,
}

/// Whether a mount is read-only with all that is mounted below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecursiveReadOnly {
    /// It need not be.
    #[default]
    Disabled,
    /// It is, where that is possible.
    IfPossible,
    /// It must be.
    Enabled,
}
