//! A view of a Deployment, in which unset fields have their defaults.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use setpoint_controller::{Owns, View};
use setpoint_model::{Meta, Selector, Template, names, percent};
use setpoint_proto::apps::{self, DeploymentSpec, DeploymentStatus};
use setpoint_proto::core::PodTemplateSpec;
use setpoint_proto::meta::{IntOrString, LabelSelector};

use crate::ReplicaSetView;

/// The fields of a Deployment that the controller reads.
#[derive(Clone, Debug, PartialEq)]
pub struct DeploymentView {
    /// The metadata.
    pub meta: Meta,
    /// The desired number of Pods.
    pub replicas: i32,
    /// The parsed selector.
    pub selector: Selector,
    /// The selector as it was written; the selectors of the ReplicaSets extend it.
    pub labels: LabelSelector,
    /// The Pod template.
    pub template: PodTemplateSpec,
    /// The encoded template, for comparisons.
    pub packed: Template,
    /// The update strategy.
    pub strategy: Strategy,
    /// Seconds for which a Pod must be ready to count as available.
    pub min_ready_seconds: i32,
    /// The number of old ReplicaSets that are kept for rollbacks.
    pub history_limit: usize,
    /// Whether rollouts are paused.
    pub paused: bool,
    /// The progress deadline.
    pub deadline: Option<Duration>,
    /// The status that was last written.
    pub status: DeploymentStatus,
}

/// An update strategy, with percentages resolved to numbers of Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All old Pods end before the first new one is created.
    Recreate,
    /// Old Pods are replaced by new ones step by step. One of the two numbers is positive, or no step would be
    /// possible.
    Rolling {
        /// The number of Pods allowed above the desired number.
        surge: i32,
        /// The number of Pods below the desired number that may be unavailable.
        unavailable: i32,
    },
}

impl View for DeploymentView {
    type Object = apps::Deployment;

    fn of(deployment: apps::Deployment) -> Self {
        let spec = deployment.spec;
        let (replicas, strategy) = (desired_replicas(&spec), Strategy::of(&spec));
        let labels = spec.selector.unwrap_or_default();
        let seconds = |seconds: i32| Duration::from_secs(seconds.max(0).unsigned_abs().into());
        Self {
            meta: Meta::of(&deployment.metadata),
            replicas,
            // The gateway rejects invalid selectors.
            selector: Selector::from_label_selector(&labels)
                .unwrap_or_else(|_| Selector::nothing()),
            labels,
            packed: Template::of(&spec.template),
            template: spec.template,
            strategy,
            min_ready_seconds: spec.min_ready_seconds,
            history_limit: usize::try_from(spec.revision_history_limit.unwrap_or(10))
                .unwrap_or_default(),
            paused: spec.paused,
            // As upstream, `i32::MAX` stands for no deadline.
            deadline: spec
                .progress_deadline_seconds
                .filter(|limit| *limit != i32::MAX)
                .map(seconds),
            status: deployment.status,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Returns the desired number of Pods; negative values count as zero.
fn desired_replicas(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1).max(0)
}

impl Strategy {
    /// Percentages are rounded up for `maxSurge` and down for `maxUnavailable`, as upstream does.
    fn of(spec: &DeploymentSpec) -> Self {
        if spec.strategy.r#type == "Recreate" {
            return Self::Recreate;
        }
        let replicas = desired_replicas(spec);
        let rolling = spec.strategy.rolling_update.clone().unwrap_or_default();
        let resolve = |number: Option<IntOrString>, round_up| {
            let number = number.unwrap_or_else(|| IntOrString::string("25%"));
            percent::resolve(&number, replicas, round_up)
                .unwrap_or_default()
                .max(0)
        };
        let surge = resolve(rolling.max_surge, true);
        let unavailable = resolve(rolling.max_unavailable, false);
        Self::Rolling {
            surge,
            unavailable: if surge == 0 {
                unavailable.max(1)
            } else {
                unavailable
            },
        }
    }
}

impl DeploymentView {
    /// Returns the maximum number of Pods during a rollout.
    pub fn max_pods(&self) -> i32 {
        match self.strategy {
            Strategy::Recreate => self.replicas,
            Strategy::Rolling { surge, .. } => self.replicas.saturating_add(surge),
        }
    }

    /// Returns the minimum number of available Pods during a rollout.
    pub fn min_available(&self) -> i32 {
        match self.strategy {
            Strategy::Recreate => self.replicas,
            Strategy::Rolling { unavailable, .. } => {
                self.replicas.saturating_sub(unavailable).max(0)
            }
        }
    }

    /// Returns the hash of the template and the collision count.
    pub fn template_hash(&self) -> String {
        self.packed.hash(self.status.collision_count)
    }

    /// Returns the name of the ReplicaSet of the current template.
    pub fn set_name(&self) -> String {
        names::child(&format!("{}-", self.meta.key.name), &self.template_hash())
    }
}

impl Owns<ReplicaSetView> for DeploymentView {
    fn selects(&self, set: &ReplicaSetView) -> bool {
        self.selector.matches(&set.meta.labels)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::apps::RollingUpdateDeployment;

    use super::*;

    fn strategy(replicas: i32, surge: IntOrString, unavailable: IntOrString) -> Strategy {
        let mut spec = DeploymentSpec {
            replicas: Some(replicas),
            ..Default::default()
        };
        spec.strategy.rolling_update = Some(RollingUpdateDeployment {
            max_surge: Some(surge),
            max_unavailable: Some(unavailable),
        });
        Strategy::of(&spec)
    }

    /// Checks D1.
    #[test]
    fn resolved_percentages_never_leave_both_surge_and_unavailable_zero() {
        let (percent, number) = (IntOrString::string, IntOrString::int);
        let rolling = |surge, unavailable| Strategy::Rolling { surge, unavailable };
        assert_eq!(strategy(10, percent("25%"), percent("25%")), rolling(3, 2));
        assert_eq!(strategy(3, number(1), number(0)), rolling(1, 0));
        assert_eq!(strategy(3, number(0), percent("10%")), rolling(0, 1));
        assert_eq!(strategy(0, percent("25%"), percent("25%")), rolling(0, 1));
    }
}
