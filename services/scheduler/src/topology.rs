//! Topology domains: nodes with the same value of a label.

use std::collections::HashMap;
use std::sync::Arc;

use crate::snapshot::NodeInfo;

/// The domains of a topology key.
#[derive(Debug, PartialEq, Eq)]
pub struct Domains {
    of: Vec<Option<usize>>,
    count: usize,
}

impl Domains {
    fn by(key: &str, nodes: &[NodeInfo]) -> Self {
        let mut known = HashMap::new();
        let mut domain = |node: &NodeInfo| {
            let value = node.view.labels().get(key)?;
            let next = known.len();
            Some(*known.entry(value.clone()).or_insert(next))
        };
        let of = nodes.iter().map(&mut domain).collect();
        Self {
            of,
            count: known.len(),
        }
    }

    /// Returns the domain of a node; `None` if it does not have the label.
    pub fn of(&self, node: usize) -> Option<usize> {
        self.of.get(node).copied().flatten()
    }

    /// Returns the number of domains.
    pub const fn count(&self) -> usize {
        self.count
    }
}

/// The domains of the topology keys that were asked for.
#[derive(Debug, Default)]
pub struct Topology {
    keys: HashMap<String, Arc<Domains>>,
}

impl Topology {
    /// Returns the domains of a topology key.
    pub fn domains(&mut self, key: &str, nodes: &[NodeInfo]) -> Arc<Domains> {
        if let Some(domains) = self.keys.get(key) {
            return domains.clone();
        }
        let domains = Arc::new(Domains::by(key, nodes));
        self.keys.insert(key.to_owned(), domains.clone());
        domains
    }
}
