//! The graph of owners and dependants, as the events have told it so far.

use std::collections::{HashMap, HashSet};

use setpoint_proto::meta::OwnerReference;

use super::node::{Node, is_blocking};

/// All objects by uid, and the dependants of each owner. It lags behind the store: a task that acts on a node looks at
/// the live object first.
#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    /// The uids of dependants, by the uid of their owner, which need not exist.
    dependants: HashMap<String, HashSet<String>>,
    content: HashMap<String, Content>,
}

/// The number of objects in a namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub pods: usize,
    pub others: usize,
}

/// A change of a node's owner references.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// Some reference is new or differs.
    pub references: bool,
    /// Owners that the node blocked and blocks no more.
    pub unblocked: Vec<Node>,
}

impl Graph {
    /// Adds a node, or replaces what is known of it.
    pub fn insert(&mut self, node: Node) -> Change {
        let uid = node.uid.clone();
        let owners = node.owners.clone();
        let former = self.nodes.insert(uid.clone(), node);
        let former = match former {
            Some(former) if former.owners == owners => return Change::default(),
            Some(former) => former.owners,
            None => {
                self.count(&uid, |number| number.saturating_add(1));
                Vec::new()
            }
        };
        for owner in &former {
            self.forget_dependant(&owner.uid, &uid);
        }
        for owner in &owners {
            let family = self.dependants.entry(owner.uid.clone()).or_default();
            family.insert(uid.clone());
        }
        let still = |owner: &OwnerReference| {
            let mut now = owners.iter();
            now.any(|now| now.uid == owner.uid && is_blocking(now))
        };
        let unblocked = former.iter().filter(|was| is_blocking(was) && !still(was));
        Change {
            references: true,
            unblocked: self.known(unblocked.map(|owner| &owner.uid)),
        }
    }

    /// Removes a node; returns its dependants, and its owners.
    pub fn remove(&mut self, uid: &str) -> (Vec<Node>, Vec<Node>) {
        self.count(uid, |number| number.saturating_sub(1));
        let dependants = self.known(self.dependants.get(uid).into_iter().flatten());
        let Some(node) = self.nodes.remove(uid) else {
            return (dependants, Vec::new());
        };
        for owner in &node.owners {
            self.forget_dependant(&owner.uid, uid);
        }
        let owners = self.known(node.owners.iter().map(|owner| &owner.uid));
        (dependants, owners)
    }

    pub fn get(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    pub fn has_dependants(&self, uid: &str) -> bool {
        self.dependants.contains_key(uid)
    }

    /// Returns how much there is in a namespace.
    pub fn content_of(&self, namespace: &str) -> Content {
        self.content.get(namespace).copied().unwrap_or_default()
    }

    /// Do nodes that wait for their dependants form a cycle through this one, so that each waits for itself?
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

    fn known<'a>(&self, uids: impl Iterator<Item = &'a String>) -> Vec<Node> {
        uids.filter_map(|uid| self.nodes.get(uid))
            .cloned()
            .collect()
    }

    fn forget_dependant(&mut self, owner: &str, dependant: &str) {
        let Some(family) = self.dependants.get_mut(owner) else {
            return;
        };
        family.remove(dependant);
        if family.is_empty() {
            self.dependants.remove(owner);
        }
    }

    fn count(&mut self, uid: &str, step: impl Fn(usize) -> usize) {
        let Some(node) = self.nodes.get(uid) else {
            return;
        };
        if !node.kind.namespaced {
            return;
        }
        let namespace = &node.key.namespace;
        let content = self.content.entry(namespace.clone()).or_default();
        match node.is_pod() {
            true => content.pods = step(content.pods),
            false => content.others = step(content.others),
        }
        if *content == Content::default() {
            self.content.remove(namespace);
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
    fn an_owner_that_goes_names_its_dependants_and_a_dependant_its_owners() {
        let mut graph = Graph::default();
        assert!(graph.insert(pod("a", &["web"])).references);
        assert!(!graph.insert(pod("a", &["web"])).references);
        graph.insert(pod("b", &["web", "db"]));
        graph.insert(pod("web", &[]));
        assert_eq!(names(&graph.remove("web").0), ["a", "b"]);
        graph.insert(pod("db", &[]));
        assert_eq!(names(&graph.remove("b").1), ["db"]);
        assert!(!graph.has_dependants("db"));
        assert!(graph.has_dependants("web"), "a is there still");
    }

    #[test]
    fn a_reference_that_is_taken_away_unblocks_its_owner() {
        let mut graph = Graph::default();
        graph.insert(pod("web", &[]));
        graph.insert(pod("a", &["web"]));
        let change = graph.insert(pod("a", &[]));
        assert_eq!(names(&change.unblocked), ["web"]);
        let mut meek = pod("a", &["web"]);
        meek.owners[0].block_owner_deletion = Some(false);
        assert!(graph.insert(pod("a", &["web"])).unblocked.is_empty());
        assert_eq!(names(&graph.insert(meek).unblocked), ["web"]);
    }

    #[test]
    fn an_owner_is_unblocked_by_the_end_of_a_reference_that_blocked_it() {
        let mut graph = Graph::default();
        graph.insert(pod("web", &[]));
        graph.insert(pod("a", &["web", "db"]));
        assert_eq!(names(&graph.insert(pod("a", &["db"])).unblocked), ["web"]);
        let mut meek = pod("b", &["web"]);
        meek.owners[0].block_owner_deletion = Some(false);
        graph.insert(meek);
        assert!(graph.insert(pod("b", &[])).unblocked.is_empty());
        assert!(graph.get("b").is_some_and(|node| node.owners.is_empty()));
        assert!(graph.get("c").is_none());
    }

    /// Checks K3.
    #[test]
    fn a_circle_is_found_only_where_everyone_in_it_waits() {
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

    #[test]
    fn the_content_of_a_namespace_is_counted() {
        let mut graph = Graph::default();
        graph.insert(pod("a", &[]));
        graph.insert(pod("a", &["web"]));
        graph.insert(pod("b", &[]));
        assert_eq!(graph.content_of("default").pods, 2);
        graph.remove("a");
        graph.remove("a");
        graph.remove("b");
        assert_eq!(graph.content_of("default"), Content::default());
        assert!(graph.content.is_empty() && graph.nodes.is_empty());
    }
}
