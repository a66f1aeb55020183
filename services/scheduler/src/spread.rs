//! Topology spread constraints of a Pod, parsed.

use setpoint_model::{Meta, Selector};
use setpoint_proto::core::{PodSpec, TopologySpreadConstraint};
use setpoint_proto::meta::LabelSelector;

use crate::affinity::{Scope, with_keys};
use crate::group::Group;

/// The labels of nodes that the default constraints spread Pods over.
const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
/// The `whenUnsatisfiable` of constraints that lower scores.
const SOFT: &str = "ScheduleAnyway";

/// Returns upstream's default constraints, which lower scores.
pub fn system_defaults() -> [TopologySpreadConstraint; 2] {
    [(HOSTNAME, 3), (ZONE, 5)].map(|(topology_key, max_skew)| TopologySpreadConstraint {
        topology_key: topology_key.to_owned(),
        max_skew,
        when_unsatisfiable: SOFT.to_owned(),
        ..TopologySpreadConstraint::default()
    })
}

/// Returns whether nodes that violate a constraint are filtered out.
pub fn is_hard(constraint: &TopologySpreadConstraint) -> bool {
    constraint.when_unsatisfiable != SOFT
}

/// A constraint on how the Pods of a group are spread over domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The label of nodes whose values are the domains.
    pub topology_key: String,
    /// The maximum difference between a domain and the one with the fewest Pods.
    pub max_skew: i64,
    /// The number of domains below which the fewest Pods count as 0.
    pub min_domains: usize,
    /// The Pods that are counted.
    pub group: Group,
    /// Whether the Pod itself is one of them.
    pub selects_itself: bool,
    /// Whether domains of nodes that the Pod's node affinity excludes are ignored.
    pub honors_affinity: bool,
    /// Whether domains of nodes with taints that the Pod does not tolerate are ignored.
    pub honors_taints: bool,
    /// Whether nodes that violate it are filtered out: `DoNotSchedule`. Otherwise it lowers their scores.
    pub is_hard: bool,
}

impl Constraint {
    /// Returns the constraints of a Pod.
    pub fn of_pod(spec: &PodSpec, meta: &Meta) -> Vec<Self> {
        let constraints = spec.topology_spread_constraints.iter();
        constraints.map(|one| Self::of(one, meta)).collect()
    }

    /// Returns a default constraint for a Pod and its group.
    pub fn default_of(constraint: &TopologySpreadConstraint, pod: &Meta, group: &Group) -> Self {
        Self {
            group: group.clone(),
            selects_itself: true,
            ..Self::of(constraint, pod)
        }
    }

    fn of(constraint: &TopologySpreadConstraint, pod: &Meta) -> Self {
        let keys = (&*constraint.match_label_keys, &[][..]);
        let parse = |labels: &LabelSelector| {
            let parsed = Selector::from_label_selector(&with_keys(labels, keys, pod));
            parsed.unwrap_or_else(|_| Selector::nothing())
        };
        let labels = constraint.label_selector.as_ref();
        let selector = labels.map_or_else(Selector::nothing, parse);
        let selects_itself = selector.matches(&pod.labels);
        // As upstream: an empty selector counts no Pods.
        let selector = match selector.is_empty() {
            true => Selector::nothing(),
            false => selector,
        };
        let honors = |policy: &Option<String>, default: bool| match policy.as_deref() {
            Some(policy) => policy == "Honor",
            None => default,
        };
        let scope = Scope::within(&pod.key.namespace, selector);
        Self {
            topology_key: constraint.topology_key.clone(),
            max_skew: constraint.max_skew.into(),
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            group: Group::remaining(scope, None),
            selects_itself,
            honors_affinity: honors(&constraint.node_affinity_policy, true),
            honors_taints: honors(&constraint.node_taints_policy, false),
            is_hard: is_hard(constraint),
        }
    }

    /// Returns whether the domains are nodes.
    pub fn is_of_hostnames(&self) -> bool {
        self.topology_key == HOSTNAME
    }
}
