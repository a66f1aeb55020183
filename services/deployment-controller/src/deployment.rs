//! A Deployment, as its controller reads it: every choice that the user left open is made here.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use setpoint_controller::{Owns, View};
use setpoint_model::{Meta, Selector, Template, names, percent};
use setpoint_proto::apps::{self, DeploymentSpec, DeploymentStatus};
use setpoint_proto::core::PodTemplateSpec;
use setpoint_proto::meta::{IntOrString, LabelSelector};

use crate::Set;

/// How many Pods of which template are wanted, and how to get there.
#[derive(Clone, Debug, PartialEq)]
pub struct Deployment {
    /// Who it is.
    pub meta: Meta,
    /// How many Pods there shall be.
    pub replicas: i32,
    /// Which ReplicaSets are meant.
    pub selector: Selector,
    /// The same, as it was written: the selector of each ReplicaSet begins with it.
    pub labels: LabelSelector,
    /// What a Pod shall look like.
    pub template: PodTemplateSpec,
    /// The template, packed for comparing.
    pub packed: Template,
    /// How Pods are replaced.
    pub strategy: Strategy,
    /// How long a Pod must have been ready to count as available.
    pub min_ready_seconds: i32,
    /// How many old ReplicaSets are kept to go back to.
    pub history_limit: usize,
    /// Is the template not to be rolled out for now?
    pub paused: bool,
    /// How long a rollout may go without progress.
    pub deadline: Option<Duration>,
    /// What was last reported.
    pub status: DeploymentStatus,
}

/// How Pods are replaced, in numbers of Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// All old ones go before the first new one comes.
    Recreate,
    /// A few at a time. Not both numbers are zero, or nothing could ever move.
    Rolling {
        /// So many Pods more than wanted are allowed.
        surge: i32,
        /// So many Pods fewer than wanted may be available.
        unavailable: i32,
    },
}

impl View for Deployment {
    type Object = apps::Deployment;

    fn of(deployment: apps::Deployment) -> Self {
        let spec = deployment.spec;
        let (replicas, strategy) = (wanted(&spec), Strategy::of(&spec));
        let labels = spec.selector.unwrap_or_default();
        let seconds = |seconds: i32| Duration::from_secs(seconds.max(0).unsigned_abs().into());
        Self {
            meta: Meta::of(&deployment.metadata),
            replicas,
            // One that cannot be read selects nothing; the gateway lets none in.
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
            // The largest number is how some clients say that there is no deadline.
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

/// The wanted number of Pods; negative values count as zero.
fn wanted(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1).max(0)
}

impl Strategy {
    /// Shares are rounded up for the surge and down for what may be unavailable, as upstream does.
    fn of(spec: &DeploymentSpec) -> Self {
        if spec.strategy.r#type == "Recreate" {
            return Self::Recreate;
        }
        let replicas = wanted(spec);
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

impl Deployment {
    /// How many Pods there may be at most.
    pub fn max_pods(&self) -> i32 {
        match self.strategy {
            Strategy::Recreate => self.replicas,
            Strategy::Rolling { surge, .. } => self.replicas.saturating_add(surge),
        }
    }

    /// How many Pods must stay available.
    pub fn min_available(&self) -> i32 {
        match self.strategy {
            Strategy::Recreate => self.replicas,
            Strategy::Rolling { unavailable, .. } => {
                self.replicas.saturating_sub(unavailable).max(0)
            }
        }
    }

    /// The hash of its template.
    pub fn template_hash(&self) -> String {
        self.packed.hash(self.status.collision_count)
    }

    /// The name of the set of its template.
    pub fn set_name(&self) -> String {
        names::child(&format!("{}-", self.meta.key.name), &self.template_hash())
    }
}

impl Owns<Set> for Deployment {
    fn selects(&self, set: &Set) -> bool {
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
    fn shares_are_rounded_so_that_a_rollout_can_always_move() {
        let (percent, number) = (IntOrString::string, IntOrString::int);
        let rolling = |surge, unavailable| Strategy::Rolling { surge, unavailable };
        assert_eq!(strategy(10, percent("25%"), percent("25%")), rolling(3, 2));
        assert_eq!(strategy(3, number(1), number(0)), rolling(1, 0));
        assert_eq!(strategy(3, number(0), percent("10%")), rolling(0, 1));
        assert_eq!(strategy(0, percent("25%"), percent("25%")), rolling(0, 1));
    }
}
