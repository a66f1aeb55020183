//! The number of Pods of each group on each node.

use std::collections::HashMap;
use std::sync::Arc;

use crate::affinity::Namespaces;
use crate::group::Group;
use crate::pod::PodView;

/// The maximum number of groups that are counted at a time: a bound on memory.
const MOST_GROUPS: usize = 512;

/// The number of Pods of each group on each node. A group is counted when it is asked for first, and kept up to date.
#[derive(Debug, Default)]
pub struct Counts {
    groups: HashMap<Group, Arc<Vec<i64>>>,
}

impl Counts {
    /// Returns the numbers of Pods of a group by node.
    pub fn of(
        &mut self,
        group: &Group,
        pods: &[Vec<Arc<PodView>>],
        namespaces: &Namespaces,
    ) -> Arc<Vec<i64>> {
        if let Some(counted) = self.groups.get(group) {
            return counted.clone();
        }
        if self.groups.len() >= MOST_GROUPS {
            self.groups.clear();
        }
        let belongs = |pod: &&Arc<PodView>| group.contains(&pod.meta, namespaces);
        let count = |pods: &Vec<Arc<PodView>>| pods.iter().filter(belongs).count();
        let counts = pods.iter().map(|pods| to_i64(count(pods)));
        let counts = Arc::new(counts.collect::<Vec<_>>());
        self.groups.insert(group.clone(), counts.clone());
        counts
    }

    /// Adds a Pod to a node.
    pub fn add(&mut self, node: usize, pod: &PodView, namespaces: &Namespaces) {
        for (group, counts) in &mut self.groups {
            if group.contains(&pod.meta, namespaces)
                && let Some(count) = Arc::make_mut(counts).get_mut(node)
            {
                *count = count.saturating_add(1);
            }
        }
    }
}

fn to_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
