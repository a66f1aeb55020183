//! Filters nodes by the required affinity and anti-affinity of a Pod, and the required anti-affinity of Pods on nodes.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::affinity::{Affinity, Namespaces, Term};
use crate::cluster::Cluster;
use crate::group::Group;
use crate::pod::PodView;
use crate::reason::FilterReason;
use crate::topology::Domains;

/// The number of Pods in each domain that matter to one Pod.
#[derive(Debug, Default)]
pub struct State {
    /// The Pods that all terms of the Pod's affinity are about, by term.
    affinity: Vec<InDomains>,
    /// The Pods that its affinity is about, in any domain.
    attracting: i64,
    /// Whether its affinity is about the Pod itself.
    attracts_itself: bool,
    /// The Pods that its anti-affinity is about, by term.
    anti: Vec<InDomains>,
    /// The Pods whose anti-affinity is about it, by topology key.
    existing: BTreeMap<String, InDomains>,
}

/// The number of Pods in each domain of a topology key.
#[derive(Debug)]
struct InDomains {
    domains: Arc<Domains>,
    pods: Vec<i64>,
}

impl InDomains {
    fn none(domains: Arc<Domains>) -> Self {
        Self {
            pods: vec![0; domains.count()],
            domains,
        }
    }

    fn of(domains: Arc<Domains>, by_node: &[i64]) -> Self {
        let mut counts = Self::none(domains);
        let nodes = by_node.iter().enumerate();
        nodes.for_each(|(node, pods)| _ = counts.add(node, *pods));
        counts
    }

    /// Adds Pods to the domain of a node. Returns how many; none if the node is in no domain.
    fn add(&mut self, node: usize, pods: i64) -> i64 {
        let domain = self.domains.of(node);
        let Some(count) = domain.and_then(|domain| self.pods.get_mut(domain)) else {
            return 0;
        };
        *count = count.saturating_add(pods);
        pods
    }

    /// Returns the number of Pods in the domain of a node; `None` if it is in none.
    fn at(&self, node: usize) -> Option<i64> {
        self.pods.get(self.domains.of(node)?).copied()
    }

    fn any_at(&self, node: usize) -> bool {
        self.at(node).is_some_and(|pods| pods > 0)
    }
}

impl State {
    /// Counts the Pods that matter to a Pod.
    pub fn of(cluster: &Cluster<'_>, pod: &PodView) -> Self {
        let namespaces = &cluster.snapshot.namespaces;
        let mut state = Self::default();
        for (key, pods) in cluster.terms.against(&pod.meta, namespaces) {
            let counts = state.existing_by(cluster, key);
            pods.iter()
                .for_each(|(node, pods)| _ = counts.add(*node, *pods));
        }
        if let Some(own) = pod.affinity.as_deref() {
            state.count_own(cluster, own, pod);
        }
        state
    }

    fn count_own(&mut self, cluster: &Cluster<'_>, own: &Affinity, pod: &PodView) {
        let in_domains = |term: &Term, group: &Group| {
            let domains = cluster.domains(&term.topology_key);
            InDomains::of(domains, &cluster.count(group))
        };
        if !own.required.is_empty() {
            let all = Group::of_terms(&own.required);
            let terms = own.required.iter();
            self.affinity = terms.map(|term| in_domains(term, &all)).collect();
            let pods = self.affinity.iter().flat_map(|counts| &counts.pods);
            self.attracting = pods.fold(0i64, |sum, pods| sum.saturating_add(*pods));
            self.attracts_itself = all.contains(&pod.meta, &cluster.snapshot.namespaces);
        }
        let anti = own.required_anti.iter();
        let anti = anti.map(|term| in_domains(term, &Group::of_term(term)));
        self.anti = anti.collect();
    }

    fn existing_by(&mut self, cluster: &Cluster<'_>, key: &str) -> &mut InDomains {
        self.existing
            .entry(key.to_owned())
            .or_insert_with(|| InDomains::none(cluster.domains(key)))
    }

    /// Adds another Pod to a node, or removes it with a negative number.
    pub fn add(
        &mut self,
        cluster: &Cluster<'_>,
        pod: &PodView,
        (other, node): (&PodView, usize),
        number: i64,
    ) {
        let namespaces = &cluster.snapshot.namespaces;
        if let Some(own) = pod.affinity.as_deref() {
            self.add_own(own, namespaces, (other, node), number);
        }
        let terms = other.affinity.as_deref();
        for term in terms.iter().flat_map(|terms| &terms.required_anti) {
            if term.scope.contains(&pod.meta, namespaces) {
                self.existing_by(cluster, &term.topology_key)
                    .add(node, number);
            }
        }
    }

    fn add_own(
        &mut self,
        own: &Affinity,
        namespaces: &Namespaces,
        (other, node): (&PodView, usize),
        number: i64,
    ) {
        let is_about = |term: &Term| term.scope.contains(&other.meta, namespaces);
        if own.required.iter().all(is_about) {
            for counts in &mut self.affinity {
                self.attracting = self.attracting.saturating_add(counts.add(node, number));
            }
        }
        for (term, counts) in own.required_anti.iter().zip(&mut self.anti) {
            if is_about(term) {
                counts.add(node, number);
            }
        }
    }

    /// Returns why a node cannot take the Pod.
    pub fn filter(&self, node: usize) -> Option<FilterReason> {
        if !self.is_attracted(node) {
            return Some(FilterReason::PodAffinity);
        }
        if self.anti.iter().any(|counts| counts.any_at(node)) {
            return Some(FilterReason::AntiAffinity);
        }
        let mut existing = self.existing.values();
        let repelled = existing.any(|counts| counts.any_at(node));
        repelled.then_some(FilterReason::ExistingAntiAffinity)
    }

    /// Returns whether the node's domains have the Pods that the affinity is about. The first Pod of a group whose
    /// affinity is about the group itself may run in any domain.
    fn is_attracted(&self, node: usize) -> bool {
        let mut pods = self.affinity.iter().map(|counts| counts.at(node));
        if self.attracting == 0 && self.attracts_itself {
            return pods.all(|pods| pods.is_some());
        }
        pods.all(|pods| pods.is_some_and(|pods| pods > 0))
    }
}
