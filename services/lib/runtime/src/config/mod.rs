//! The configurations of sandboxes and containers.

mod container;
mod image;
mod resources;
mod sandbox;
mod security;
mod volume;

pub use container::{Console, ContainerConfig, LogLimits, Processes, TerminationMessage};
pub use image::{ImageOrigin, ImageVolume, Pull, Pulled};
pub use resources::{Limits, PodResources};
pub use sandbox::{HostPort, SandboxConfig};
pub use security::{Profile, Security};
pub use volume::{File, HostPath, Mount, RecursiveReadOnly, Volume, VolumeKind};
