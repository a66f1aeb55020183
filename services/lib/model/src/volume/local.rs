//! Volumes that are folders of a node.

use crate::Meta;

/// Their provisioner; the annotation of nodes with the folder that contains them; and the finalizer with which the
/// agent of the node keeps a volume until its folder is removed.
pub const LOCAL_PATH: &str = "setpoint.dev/local-path";
/// On volumes of this provisioner: the name of the node.
pub const NODE: &str = "setpoint.dev/node";

/// The label of nodes with the runtime of their containers.
pub const RUNTIME: &str = "setpoint.dev/runtime";
/// The runtime of nodes that run nothing.
pub const SIMULATED: &str = "simulated";

/// The folder of simulated nodes, where nothing is made or removed.
const SIMULATED_FOLDER: &str = "/var/lib/setpoint/local-path";

/// Returns the folder of a node for local volumes, and whether the agent of the node has to remove what it contains;
/// `None` if the node has no such folder.
pub fn local_folder(node: &Meta) -> Option<(&str, bool)> {
    let runtime = node.labels.get(RUNTIME);
    if runtime.is_some_and(|runtime| runtime == SIMULATED) {
        return Some((SIMULATED_FOLDER, false));
    }
    let folder = node.annotation(LOCAL_PATH)?;
    let is_absolute = folder.starts_with('/');
    is_absolute.then(|| (folder.trim_end_matches('/'), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_a_folder_if_its_agent_says_so_or_if_it_is_simulated() {
        let node = |folder: Option<&str>, runtime: &str| {
            let mut meta = Meta::default();
            meta.annotations
                .extend(folder.map(|folder| (LOCAL_PATH.to_owned(), folder.to_owned())));
            let label = ("setpoint.dev/runtime".to_owned(), runtime.to_owned());
            meta.labels.extend([label]);
            meta
        };
        let simulated = Some((SIMULATED_FOLDER, false));
        assert_eq!(local_folder(&node(None, "simulated")), simulated);
        assert_eq!(local_folder(&node(Some("/data"), "simulated")), simulated);
        let real = node(Some("/data/"), "process");
        assert_eq!(local_folder(&real), Some(("/data", true)));
        assert_eq!(local_folder(&node(Some("data"), "process")), None);
        assert_eq!(local_folder(&node(None, "process")), None);
    }
}
