//! A view of a Node.

use setpoint_controller::View;
use setpoint_model::Meta;
use setpoint_model::volume::local_folder;
use setpoint_proto::core::Node;

/// The fields of a Node that the provisioning of local volumes depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The label with its host name.
    pub hostname: Option<String>,
    /// The folder for local volumes, and whether its agent removes what it contains.
    pub folder: Option<(String, bool)>,
}

impl View for NodeView {
    type Object = Node;

    fn of(node: Node) -> Self {
        let mut meta = Meta::of(&node.metadata);
        let folder = local_folder(&meta).map(|(path, removes)| (path.to_owned(), removes));
        let hostname = meta.labels.remove("kubernetes.io/hostname");
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            hostname,
            folder,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
