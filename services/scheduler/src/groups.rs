//! Groups of Pods that affinity and topology spread are about, and the number of their Pods on each node.

use std::collections::HashMap;
use std::sync::Arc;

use crate::affinity::{Namespaces, Scope, Term};
use crate::pod::PodView;

/// The maximum number of groups that are counted at a time: a bound on memory.
const MOST_GROUPS: usize = 512;

/// Pods in all of some scopes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    scopes: Vec<Scope>,
    /// The uid of their controller, if it must be the same.
    owner: Option<String>,
    /// Whether Pods that are being deleted belong to it.
    with_leaving: bool,
}

impl Group {
    /// Returns the Pods that a term is about.
    pub fn of_term(term: &Term) -> Self {
        Self::of_terms(std::slice::from_ref(term))
    }

    /// Returns the Pods that all of these terms are about; none without a term.
    pub fn of_terms(terms: &[Term]) -> Self {
        Self {
            scopes: terms.iter().map(|term| term.scope.clone()).collect(),
            owner: None,
            with_leaving: true,
        }
    }

    /// Returns the Pods of a scope and a controller that are not being deleted.
    pub fn remaining(scope: Scope, owner: Option<String>) -> Self {
        Self {
            scopes: vec![scope],
            owner,
            with_leaving: false,
        }
    }

    /// Returns whether a Pod belongs to the group.
    pub fn contains(&self, pod: &PodView, namespaces: &Namespaces) -> bool {
        self.could_contain(pod, |scope| scope.contains(&pod.meta, namespaces))
    }

    /// Returns whether a Pod may belong to the group, whatever the labels of its namespace.
    pub fn may_contain(&self, pod: &PodView) -> bool {
        self.could_contain(pod, |scope| scope.may_contain(&pod.meta))
    }

    fn could_contain(&self, pod: &PodView, is_in: impl Fn(&Scope) -> bool) -> bool {
        let same = |uid: &String| pod.meta.is_owned_by(uid);
        (self.with_leaving || !pod.meta.deleting)
            && self.owner.as_ref().is_none_or(same)
            && !self.scopes.is_empty()
            && self.scopes.iter().all(is_in)
    }
}

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
        let belongs = |pod: &&Arc<PodView>| group.contains(pod, namespaces);
        let count = |pods: &Vec<Arc<PodView>>| pods.iter().filter(belongs).count();
        let counts = pods.iter().map(|pods| to_i64(count(pods)));
        let counts = Arc::new(counts.collect::<Vec<_>>());
        self.groups.insert(group.clone(), counts.clone());
        counts
    }

    /// Adds a Pod to a node.
    pub fn add(&mut self, node: usize, pod: &PodView, namespaces: &Namespaces) {
        for (group, counts) in &mut self.groups {
            if group.contains(pod, namespaces)
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
