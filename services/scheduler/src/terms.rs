//! The affinity and anti-affinity of Pods on nodes, by term: the Pods of one template have equal terms.

use std::collections::HashMap;

use setpoint_model::Meta;

use crate::affinity::{Namespaces, Term};
use crate::pod::PodView;

/// Terms with the weight of their Pods on each node.
#[derive(Debug, Default)]
pub struct PlacedTerms {
    /// Required anti-affinity, with the number of Pods.
    anti: HashMap<Term, HashMap<usize, i64>>,
    /// Required affinity, with the number of Pods.
    required: HashMap<Term, HashMap<usize, i64>>,
    /// Preferred affinity and anti-affinity, with the sum of weights.
    preferred: HashMap<Term, HashMap<usize, i64>>,
}

impl PlacedTerms {
    /// Adds the terms of a Pod on a node.
    pub fn add(&mut self, node: usize, pod: &PodView) {
        let Some(affinity) = &pod.affinity else {
            return;
        };
        for term in &affinity.required_anti {
            weigh(&mut self.anti, term, node, 1);
        }
        for term in &affinity.required {
            weigh(&mut self.required, term, node, 1);
        }
        for (term, weight) in &affinity.preferred {
            weigh(&mut self.preferred, term, node, *weight);
        }
    }

    /// Returns the terms of required anti-affinity that are about a Pod: the topology key, and the number of Pods by
    /// node.
    pub fn against<'a>(
        &'a self,
        pod: &'a Meta,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = (&'a str, &'a HashMap<usize, i64>)> {
        about(&self.anti, pod, namespaces)
    }

    /// Returns the terms of required affinity that are about a Pod: the topology key, and the number of Pods by node.
    pub fn requiring<'a>(
        &'a self,
        pod: &'a Meta,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = (&'a str, &'a HashMap<usize, i64>)> {
        about(&self.required, pod, namespaces)
    }

    /// Returns the preferred terms that are about a Pod: the topology key, and the sum of weights by node.
    pub fn preferring<'a>(
        &'a self,
        pod: &'a Meta,
        namespaces: &'a Namespaces,
    ) -> impl Iterator<Item = (&'a str, &'a HashMap<usize, i64>)> {
        about(&self.preferred, pod, namespaces)
    }
}

fn about<'a>(
    terms: &'a HashMap<Term, HashMap<usize, i64>>,
    pod: &'a Meta,
    namespaces: &'a Namespaces,
) -> impl Iterator<Item = (&'a str, &'a HashMap<usize, i64>)> {
    let terms = terms.iter();
    terms
        .filter(|(term, _)| term.scope.contains(pod, namespaces))
        .map(|(term, weights)| (&*term.topology_key, weights))
}

fn weigh(terms: &mut HashMap<Term, HashMap<usize, i64>>, term: &Term, node: usize, weight: i64) {
    let weights = match terms.get_mut(term) {
        Some(weights) => weights,
        None => terms.entry(term.clone()).or_default(),
    };
    let sum = weights.entry(node).or_default();
    *sum = sum.saturating_add(weight);
}
