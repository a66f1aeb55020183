//! A view of a PodDisruptionBudget.

use setpoint_controller::{View, selector};
use setpoint_model::{Meta, Selector};
use setpoint_proto::meta::IntOrString;
use setpoint_proto::policy::{
    PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus,
};

/// The fields of a PodDisruptionBudget that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetView {
    /// The metadata.
    pub meta: Meta,
    /// The parsed selector. One without requirements matches all Pods of the namespace; an absent one matches none.
    pub selector: Selector,
    /// The number of Pods that must stay.
    pub rule: Rule,
    /// The status that was last written.
    pub status: PodDisruptionBudgetStatus,
}

/// The number of Pods that must stay.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// This many healthy Pods.
    MinAvailable(i32),
    /// This part of the Pods that their controllers want, rounded up.
    MinAvailablePart(IntOrString),
    /// All but this number or part (rounded up) of the Pods that their controllers want.
    MaxUnavailable(IntOrString),
    /// None. Such a budget allows no disruption, as upstream.
    Unset,
}

impl Rule {
    fn of(spec: &PodDisruptionBudgetSpec) -> Self {
        match (&spec.max_unavailable, &spec.min_available) {
            (Some(most), _) => Self::MaxUnavailable(most.clone()),
            (None, Some(least)) if least.as_str().is_none() => Self::MinAvailable(least.int_val),
            (None, Some(part)) => Self::MinAvailablePart(part.clone()),
            (None, None) => Self::Unset,
        }
    }

    /// Returns whether it is relative to the scales of the Pods' controllers.
    pub fn needs_scales(&self) -> bool {
        matches!(self, Self::MinAvailablePart(_) | Self::MaxUnavailable(_))
    }
}

impl View for BudgetView {
    type Object = PodDisruptionBudget;

    fn of(budget: PodDisruptionBudget) -> Self {
        Self {
            meta: Meta::of(&budget.metadata),
            selector: selector(budget.spec.selector.as_ref()),
            rule: Rule::of(&budget.spec),
            status: budget.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}
