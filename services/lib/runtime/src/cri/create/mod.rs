//! Builds the requests for sandboxes and containers. Pure.

#![warn(clippy::arithmetic_side_effects)]

mod container;
mod resources;
mod sandbox;
mod security;

use k8s_cri::v1::{NamespaceMode, NamespaceOption};

pub use self::container::{Parts, container};
pub use self::resources::resources;
pub use self::sandbox::{Surroundings, sandbox};
use crate::SandboxConfig;

/// Returns the namespaces that a Pod shares with its node, and those of its own.
fn namespaces(config: &SandboxConfig) -> NamespaceOption {
    let shared = |is_shared: bool, own: NamespaceMode| match is_shared {
        true => NamespaceMode::Node.into(),
        false => own.into(),
    };
    NamespaceOption {
        network: shared(config.host_network, NamespaceMode::Pod),
        pid: shared(config.host_pid, NamespaceMode::Container),
        ipc: shared(config.host_ipc, NamespaceMode::Pod),
        ..NamespaceOption::default()
    }
}
