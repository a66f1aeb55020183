//! Builds the requests for sandboxes and containers. Pure.

#![warn(clippy::arithmetic_side_effects)]

mod container;
mod resources;
mod sandbox;
mod security;

use k8s_cri::v1::{IdMapping, NamespaceMode, NamespaceOption, UserNamespace};

pub use self::container::{Parts, container};
pub use self::resources::resources;
pub use self::sandbox::{Surroundings, sandbox};
use crate::SandboxConfig;
use crate::cri::user_ids::LENGTH;

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
        userns_options: Some(user_namespace(config)),
        ..NamespaceOption::default()
    }
}

/// Returns the user namespace of a Pod.
fn user_namespace(config: &SandboxConfig) -> UserNamespace {
    let ids = id_mappings(config);
    let mode = match ids.as_slice() {
        [] => NamespaceMode::Node,
        _ => NamespaceMode::Pod,
    };
    UserNamespace {
        mode: mode.into(),
        uids: ids.clone(),
        gids: ids,
    }
}

/// Returns the mapping of the ids of users, and of groups, in a Pod to those of its node; none if they are the same.
fn id_mappings(config: &SandboxConfig) -> Vec<IdMapping> {
    let mapping = |host_id| IdMapping {
        host_id,
        container_id: 0,
        length: LENGTH,
    };
    config.first_user.map(mapping).into_iter().collect()
}
