//! The nodes that are known to the controller, with the Events about those that come and go.

use std::collections::HashMap;

use setpoint_controller::{Recorder, events};
use setpoint_model::Key;
use setpoint_proto::core::{Node, ObjectReference};

use crate::NodeView;

/// The nodes that were observed in a term, by name. As upstream, a new leader announces all of them.
#[derive(Default)]
pub struct Registered(HashMap<String, ObjectReference>);

/// A node that has come or gone.
#[derive(Debug, PartialEq)]
pub struct NodeEvent {
    about: ObjectReference,
    reason: &'static str,
    message: String,
}

impl Registered {
    /// Notes whether there is a node of this name; returns the change.
    pub fn observe(&mut self, key: &Key, node: Option<&NodeView>) -> Option<NodeEvent> {
        let name = &key.name;
        let (about, reason, event) = match node {
            Some(_) if self.0.contains_key(name) => return None,
            Some(node) => {
                let about = events::reference::<Node>(&node.meta);
                self.0.insert(name.clone(), about.clone());
                let event = format!("Registered Node {name} in Controller");
                (about, "RegisteredNode", event)
            }
            None => {
                let event = format!("Removing Node {name} from Controller");
                (self.0.remove(name)?, "RemovingNode", event)
            }
        };
        let message = format!("Node {name} event: {event}");
        Some(NodeEvent {
            about,
            reason,
            message,
        })
    }
}

impl NodeEvent {
    /// Records the Event about it.
    pub fn record(&self, events: &Recorder) {
        events.normal(&self.about, self.reason, self.message.as_str());
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;

    use super::*;

    /// Checks RegisteredNode, in the words of upstream.
    #[test]
    fn a_node_is_announced_once_when_it_comes_and_when_it_goes() {
        let mut node = Node::default();
        (node.metadata.name, node.metadata.uid) = ("a".into(), "5be0".into());
        let (node, key) = (NodeView::of(node), Key::new("", "a"));
        let mut registered = Registered::default();
        let came = registered.observe(&key, Some(&node)).unwrap();
        assert_eq!(
            (came.reason, came.about.uid.as_str()),
            ("RegisteredNode", "5be0")
        );
        assert_eq!(
            came.message,
            "Node a event: Registered Node a in Controller"
        );
        assert_eq!(registered.observe(&key, Some(&node)), None);
        let went = registered.observe(&key, None).unwrap();
        assert_eq!(
            (went.reason, went.about.uid.as_str()),
            ("RemovingNode", "5be0")
        );
        assert_eq!(
            went.message,
            "Node a event: Removing Node a from Controller"
        );
        assert_eq!(registered.observe(&key, None), None);
    }
}
