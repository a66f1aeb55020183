//! The nodes of this process, with the paths of the machine that are theirs.

use std::path::{Path, PathBuf};

use setpoint_runtime::Kind;
use setpoint_runtime::cri::Service;
use setpoint_runtime::docker::Engine;

use crate::node::eviction::FileSystems;
use crate::node::{Machine, Node};
use crate::settings::Settings;

/// Returns the nodes that the settings ask for, with the engine that runs their containers, or the reason why none
/// does.
///
/// # Errors
/// If the settings reserve more than the machine has.
pub fn nodes(
    settings: &Settings,
    instance: &str,
    machine: &Machine,
    engine: Option<&Engine>,
    fallback: &str,
) -> Result<Vec<Node>, String> {
    let mut nodes = Node::all(&settings.node(), instance, machine)?;
    for node in &mut nodes {
        fallback.clone_into(&mut node.fallback);
        if let Some(engine) = engine {
            node.runtime_version.clone_from(&engine.version);
        }
        let contained = engine.is_some_and(|engine| engine.contained);
        node.local_path = local_path(settings, &node.name, contained);
        node.disks = disks(settings, &node.name, engine);
    }
    Ok(nodes)
}

/// Lets nodes report the runtime that runs their containers, and the file system of its images.
pub fn describe(nodes: &mut [Node], service: &Service) {
    for node in nodes {
        node.runtime_name.clone_from(&service.name);
        node.runtime_version.clone_from(&service.version);
        node.features = service.features.clone();
        if let Some(disks) = &mut node.disks {
            disks.images.clone_from(&service.root);
        }
    }
}

/// Returns the directory of the state of a node's processes.
pub fn state_dir(settings: &Settings, node: &str) -> PathBuf {
    match settings.state_dir.as_os_str().is_empty() {
        true => Path::new(".setpoint/node").join(node),
        false => settings.state_dir.clone(),
    }
}

/// Returns the directory of a node's persistent volumes; `None` if it keeps none.
fn local_path(settings: &Settings, node: &str, contained: bool) -> Option<PathBuf> {
    match (settings.runtime, settings.local_path.as_os_str().is_empty()) {
        (Kind::Simulated, _) => None,
        (_, false) => Some(settings.local_path.clone()),
        (_, true) if contained => None,
        (_, true) => {
            let state = std::path::absolute(state_dir(settings, node)).ok()?;
            Some(state.join("local-path"))
        }
    }
}

/// Returns the file systems of a node; `None` if it is simulated.
fn disks(settings: &Settings, node: &str, engine: Option<&Engine>) -> Option<FileSystems> {
    match (engine, settings.runtime) {
        (Some(engine), _) => Some(FileSystems {
            node: ".".into(),
            images: Some(engine.root.clone()),
        }),
        (None, Kind::Simulated) => None,
        (None, _) => Some(FileSystems {
            node: state_dir(settings, node),
            images: None,
        }),
    }
}
