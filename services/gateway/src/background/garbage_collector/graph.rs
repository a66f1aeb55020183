//! The graph of owners and dependants, built from watch events.

use std::collections::{HashMap, HashSet};

use setpoint_proto::meta::OwnerReference;

use super::node::{Node, is_blocking};

/// All objects by uid, and the dependants of each owner. It lags behind the store, so a task reads the live object before
/// it acts.
#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    /// The uids of dependants by the uid of their owner, which need not exist.
    dependants: HashMap<String, HashSet<String>>,
}

/// A change of a node's owner references.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Whether a reference was added or changed.
    pub references: bool,
    /// The owners whose deletion the node no longer blocks.
    pub unblocked: Vec<Node>,
}

impl Graph {
    /// Adds or replaces a node.
    pub fn insert(&mut self, node: Node) -> Change {
        let uid = node.uid.clone();
        let owners = node.owners.clone();
        let former = self.nodes.insert(uid.clone(), node);
        let former = match former {
            Some(former) if former.owners == owners => return Change::default(),
            Some(former) => former.owners,
            None => Vec::new(),
        };
        for owner in &former {
            self.remove_dependant(&owner.uid, &uid);
        }
        for owner in &owners {
            let dependants = self.dependants.entry(owner.uid.clone()).or_default();
            dependants.insert(uid.clone());
        }
        let still = |owner: &OwnerReference| {
            let mut now = owners.iter();
            now.any(|now| now.uid == owner.uid && is_blocking(now))
        };
        let unblocked = former.iter().filter(|was| is_blocking(was) && !still(was));
        Change {
            references: true,
            unblocked: self.nodes_of(unblocked.map(|owner| &owner.uid)),
        }
    }

    /// Removes a node; returns its dependants and its owners.
    pub fn remove(&mut self, uid: &str) -> (Vec<Node>, Vec<Node>) {
        let dependants = self.nodes_of(self.dependants.get(uid).into_iter().flatten());
        let Some(node) = self.nodes.remove(uid) else {
            return (dependants, Vec::new());
        };
        for owner in &node.owners {
            self.remove_dependant(&owner.uid, uid);
        }
        let owners = self.nodes_of(node.owners.iter().map(|owner| &owner.uid));
        (dependants, owners)
    }

    pub fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub fn has_dependants(&self, uid: &str) -> bool {
        self.dependants.contains_key(uid)
    }

    /// Returns whether nodes that wait for their dependants form a cycle through this node: then none of them can be deleted.
    pub fn is_in_cycle(&self, uid: &str) -> bool {
        let mut seen = HashSet::new();
        let mut next = vec![uid];
        while let Some(owner) = next.pop() {
            for dependant in self.dependants.get(owner).into_iter().flatten() {
                let Some(node) = self.nodes.get(dependant) else {
                    continue;
                };
                if !node.blocks(owner) || !node.waits_for_dependants() {
                    continue;
                }
                if dependant == uid {
                    return true;
                }
                if seen.insert(dependant) {
                    next.push(dependant);
                }
            }
        }
        false
    }

    fn nodes_of<'a>(&self, uids: impl Iterator<Item = &'a String>) -> Vec<Node> {
        uids.filter_map(|uid| self.nodes.get(uid))
            .cloned()
            .collect()
    }

    fn remove_dependant(&mut self, owner: &str, dependant: &str) {
        let Some(dependants) = self.dependants.get_mut(owner) else {
            return;
        };
        dependants.remove(dependant);
        if dependants.is_empty() {
            self.dependants.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;
    use setpoint_model::Key;

    use super::*;
    use crate::registry::validation::metadata::FOREGROUND;

    fn pod(name: &str, owners: &[&str]) -> Node {
        let reference = |owner: &&str| OwnerReference {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            name: (*owner).into(),
            uid: (*owner).into(),
            block_owner_deletion: Some(true),
            ..Default::default()
        };
        Node {
            kind: kinds().by_resource("pods").unwrap(),
            key: Key::new("default", name),
            uid: name.into(),
            owners: owners.iter().map(reference).collect(),
            finalizers: Vec::new(),
            ending: false,
        }
    }

    fn waiting(name: &str, owners: &[&str]) -> Node {
        Node {
            finalizers: vec![FOREGROUND.into()],
            ending: true,
            ..pod(name, owners)
        }
    }

    fn names(nodes: &[Node]) -> Vec<&str> {
        let mut names: Vec<_> = nodes.iter().map(|node| &*node.uid).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn removing_a_node_returns_its_dependants_and_its_owners() {
        let mut graph = Graph::default();
        assert!(graph.insert(pod("a", &["web"])).references);
        assert!(!graph.insert(pod("a", &["web"])).references);
        graph.insert(pod("b", &["web", "db"]));
        graph.insert(pod("web", &[]));
        assert_eq!(names(&graph.remove("web").0), ["a", "b"]);
        graph.insert(pod("db", &[]));
        assert_eq!(names(&graph.remove("b").1), ["db"]);
        assert!(!graph.has_dependants("db"));
        assert!(graph.has_dependants("web"), "the dependant a is left");
    }

    #[test]
    fn removing_a_blocking_reference_unblocks_its_owner() {
        let mut graph = Graph::default();
        graph.insert(pod("web", &[]));
        graph.insert(pod("a", &["web"]));
        let change = graph.insert(pod("a", &[]));
        assert_eq!(names(&change.unblocked), ["web"]);
        let mut non_blocking = pod("a", &["web"]);
        non_blocking.owners[0].block_owner_deletion = Some(false);
        assert!(graph.insert(pod("a", &["web"])).unblocked.is_empty());
        assert_eq!(names(&graph.insert(non_blocking).unblocked), ["web"]);
    }

    #[test]
    fn removing_a_reference_unblocks_only_an_owner_that_it_blocked() {
        let mut graph = Graph::default();
        graph.insert(pod("web", &[]));
        graph.insert(pod("a", &["web", "db"]));
        assert_eq!(names(&graph.insert(pod("a", &["db"])).unblocked), ["web"]);
        let mut non_blocking = pod("b", &["web"]);
        non_blocking.owners[0].block_owner_deletion = Some(false);
        graph.insert(non_blocking);
        assert!(graph.insert(pod("b", &[])).unblocked.is_empty());
        assert!(graph.get("b").is_some_and(|node| node.owners.is_empty()));
        assert!(graph.get("c").is_none());
    }

    /// Checks K3.
    #[test]
    fn a_cycle_is_found_only_if_all_of_its_nodes_wait() {
        let mut graph = Graph::default();
        graph.insert(waiting("a", &["c"]));
        graph.insert(waiting("b", &["a"]));
        graph.insert(pod("c", &["b"]));
        assert!(!graph.is_in_cycle("a"));
        graph.insert(waiting("c", &["b"]));
        graph.insert(waiting("beside", &["a"]));
        for name in ["a", "b", "c"] {
            assert!(graph.is_in_cycle(name), "{name}");
        }
        assert!(!graph.is_in_cycle("beside"));
    }
}
