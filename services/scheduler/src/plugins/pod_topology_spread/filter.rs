//! Filters nodes by the constraints with `DoNotSchedule`.

#![warn(clippy::arithmetic_side_effects)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{constraints, includes};
use crate::cluster::Cluster;
use crate::pod::PodView;
use crate::profile::Pending;
use crate::reason::FilterReason;
use crate::spread::Constraint;
use crate::topology::Domains;

/// The spread of the Pods of each constraint.
#[derive(Debug, Default)]
pub struct State<'p> {
    spreads: Vec<Spread<'p>>,
}

/// The number of Pods in each domain of a constraint.
#[derive(Debug)]
struct Spread<'p> {
    constraint: Cow<'p, Constraint>,
    domains: Arc<Domains>,
    /// The domain of each node that counts.
    homes: Vec<Option<usize>>,
    /// The number of Pods in each domain.
    pods: Vec<i64>,
    /// The number of domains that count, by their number of Pods.
    domains_by_pods: BTreeMap<i64, usize>,
    /// The number of domains that count.
    counted: usize,
}

impl<'p> State<'p> {
    /// Counts the Pods for the constraints of a Pod.
    pub fn of(cluster: &Cluster<'_>, pending: Pending<'p>) -> Self {
        let hard = constraints(cluster, pending, true);
        let domains = |constraint: &Constraint| cluster.domains(&constraint.topology_key);
        let keyed: Vec<_> = hard
            .into_iter()
            .map(|constraint| (domains(&constraint), constraint))
            .collect();
        // As upstream: a node that lacks the label of one constraint counts for none.
        let complete = |node: usize| keyed.iter().all(|(domains, _)| domains.of(node).is_some());
        let spreads = keyed.iter().map(|(domains, constraint)| {
            let home = |node: usize| {
                let view = &cluster.nodes[node].view;
                let counts = complete(node) && includes(constraint, &pending.wants.node, view);
                domains.of(node).filter(|_| counts)
            };
            let homes = (0..cluster.nodes.len()).map(home).collect();
            let by_node = cluster.count(&constraint.group);
            Spread::new(constraint.clone(), domains.clone(), homes, &by_node)
        });
        let spreads = spreads.collect();
        Self { spreads }
    }

    /// Adds another Pod to a node, or removes it with a negative number.
    pub fn add(&mut self, cluster: &Cluster<'_>, (pod, node): (&PodView, usize), number: i64) {
        let namespaces = &cluster.snapshot.namespaces;
        for spread in &mut self.spreads {
            if spread.constraint.group.contains(&pod.meta, namespaces) {
                spread.add(node, number);
            }
        }
    }

    /// Returns why a node cannot take the Pod.
    pub fn filter(&self, node: usize) -> Option<FilterReason> {
        self.spreads.iter().find_map(|spread| spread.filter(node))
    }
}

impl<'p> Spread<'p> {
    fn new(
        constraint: Cow<'p, Constraint>,
        domains: Arc<Domains>,
        homes: Vec<Option<usize>>,
        by_node: &[i64],
    ) -> Self {
        let mut pods = vec![0i64; domains.count()];
        let mut counts = vec![false; domains.count()];
        for (home, number) in homes.iter().zip(by_node) {
            if let Some(domain) = *home {
                counts[domain] = true;
                pods[domain] = pods[domain].saturating_add(*number);
            }
        }
        let mut spread = Self {
            constraint,
            domains,
            homes,
            pods,
            domains_by_pods: BTreeMap::new(),
            counted: counts.iter().filter(|counts| **counts).count(),
        };
        let counted = counts.iter().zip(spread.pods.clone());
        let counted = counted.filter_map(|(counts, pods)| counts.then_some(pods));
        counted.for_each(|pods| spread.enter(pods));
        spread
    }

    fn add(&mut self, node: usize, number: i64) {
        let Some(domain) = self.homes.get(node).copied().flatten() else {
            return;
        };
        let (before, after) = (self.pods[domain], self.pods[domain].saturating_add(number));
        self.pods[domain] = after;
        self.leave(before);
        self.enter(after);
    }

    fn enter(&mut self, pods: i64) {
        let domains = self.domains_by_pods.entry(pods).or_default();
        *domains = domains.saturating_add(1);
    }

    fn leave(&mut self, pods: i64) {
        if let Some(domains) = self.domains_by_pods.get_mut(&pods) {
            *domains = domains.saturating_sub(1);
            if *domains == 0 {
                self.domains_by_pods.remove(&pods);
            }
        }
    }

    /// Returns the number of Pods in the domain with the fewest; 0 if there are fewer domains than `minDomains`.
    fn fewest(&self) -> i64 {
        let fewest = self.domains_by_pods.first_key_value();
        let enough = self.counted >= self.constraint.min_domains;
        fewest.map_or(0, |(pods, _)| if enough { *pods } else { 0 })
    }

    fn filter(&self, node: usize) -> Option<FilterReason> {
        let Some(domain) = self.domains.of(node) else {
            return Some(FilterReason::SpreadLabel);
        };
        let own = i64::from(self.constraint.selects_itself);
        let pods = self.pods[domain].saturating_add(own);
        let skew = pods.saturating_sub(self.fewest());
        (skew > self.constraint.max_skew).then_some(FilterReason::Spread)
    }
}
