//! Groups of Pods that affinity and topology spread match.

use setpoint_model::Meta;

use crate::affinity::{Namespaces, Scope, Term};

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
    /// Returns the Pods that a term matches.
    pub fn of_term(term: &Term) -> Self {
        Self::of_terms(std::slice::from_ref(term))
    }

    /// Returns the Pods that all of these terms match; none without a term.
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
    pub fn contains(&self, pod: &Meta, namespaces: &Namespaces) -> bool {
        self.could_contain(pod, |scope| scope.contains(pod, namespaces))
    }

    /// Returns whether a Pod may belong to the group, whatever the labels of its namespace.
    pub fn may_contain(&self, pod: &Meta) -> bool {
        self.could_contain(pod, |scope| scope.may_contain(pod))
    }

    fn could_contain(&self, pod: &Meta, is_in: impl Fn(&Scope) -> bool) -> bool {
        let same = |uid: &String| pod.is_owned_by(uid);
        (self.with_leaving || !pod.deleting)
            && self.owner.as_ref().is_none_or(same)
            && !self.scopes.is_empty()
            && self.scopes.iter().all(is_in)
    }
}
