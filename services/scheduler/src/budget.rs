//! The scheduler's view of a PodDisruptionBudget.

use std::collections::BTreeSet;

use setpoint_controller::{View, selector};
use setpoint_model::{Meta, Selector};
use setpoint_proto::policy::PodDisruptionBudget;

/// A PodDisruptionBudget: the disruptions that it still allows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetView {
    /// The metadata.
    pub meta: Meta,
    /// Selects the Pods of its namespace; as upstream, an empty selector selects none here.
    pub selector: Selector,
    /// The number of Pods that may be disrupted.
    pub allowed: i64,
    /// The names of Pods whose eviction has been counted already.
    pub disrupted: BTreeSet<String>,
}

impl View for BudgetView {
    type Object = PodDisruptionBudget;

    fn of(budget: PodDisruptionBudget) -> Self {
        Self {
            meta: Meta::of(&budget.metadata),
            selector: selector(budget.spec.selector.as_ref()),
            allowed: budget.status.disruptions_allowed.into(),
            disrupted: budget.status.disrupted_pods.into_keys().collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl BudgetView {
    /// Returns whether a disruption of the Pod counts against the budget.
    pub fn covers(&self, pod: &Meta) -> bool {
        self.meta.key.namespace == pod.key.namespace
            && !pod.labels.is_empty()
            && !self.selector.is_empty()
            && self.selector.matches(&pod.labels)
            && !self.disrupted.contains(&pod.key.name)
    }
}
