//! The outcomes of writes: bindings are assumed or forgotten, unschedulable Pods are kept, and others are woken.

use std::sync::Arc;

use setpoint_controller::Receipt;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::catch_panic;
use tracing::{info, warn};

use super::{Decided, Scheduler};
use crate::assumed::is_in_doubt;
use crate::cluster_event::ClusterEvent;
use crate::metrics;
use crate::plan::Action;
use crate::plugin::{Plugin, PluginSet};
use crate::pod::PodView;
use crate::status::Nomination;
use crate::unschedulable::Refusal;

impl Scheduler {
    /// Records the outcome of a write.
    pub(super) fn record_outcome(
        &self,
        decided: &Decided,
        action: &Action,
        result: &Result<Receipt, ApiError>,
    ) {
        let key = &decided.pod.meta.key;
        let (profile, failed) = (decided.profile(), result.as_ref().err());
        let attempted = || metrics::attempted(profile, action, failed, decided.now);
        match action {
            Action::Bind { pod, node, .. } => {
                attempted();
                self.record_binding(decided, (pod, node), result);
            }
            Action::MarkUnschedulable {
                message,
                rejectors,
                nomination,
                ..
            } => {
                attempted();
                if result.is_err() && matches!(nomination, Nomination::Node(_)) {
                    // Other Pods may have been unschedulable because of the reservation.
                    self.wake(&ClusterEvent::left(decided.pod.clone()));
                }
                if result.is_ok() {
                    info!(pod = %key, %message, "unschedulable");
                    metrics::looked_for_victims(decided.nodes, decided.victims());
                    self.keep_unschedulable(decided, *rejectors, false);
                }
            }
            Action::BindVolumes { pod, node, .. } => match result {
                Ok(_) => {
                    info!(pod = %key, %node, "waits for its volumes");
                    let plugins = [Plugin::VolumeBinding].into_iter().collect();
                    self.keep_unschedulable(decided, plugins, true);
                }
                // Other Pods may have been unschedulable because of this one.
                Err(_) => self.wake(&ClusterEvent::left(pod.clone())),
            },
            Action::Preempt { victim, node, .. } if result.is_ok() => {
                info!(pod = %key, victim = %victim.meta.key, %node, "preempted");
            }
            Action::Withdraw { nominated, .. } if result.is_ok() => {
                let pod = &nominated.meta.key;
                self.unschedulable.wake_pod(pod, &self.queue);
            }
            Action::Preempt { .. } | Action::Withdraw { .. } => {}
        }
    }

    fn record_binding(
        &self,
        decided: &Decided,
        (pod, node): (&Arc<PodView>, &str),
        result: &Result<Receipt, ApiError>,
    ) {
        let key = &pod.meta.key;
        match result {
            Ok(_) => {
                info!(pod = %key, %node, "bound");
                let attempts = self.unschedulable.attempts(key);
                let (before, since) = attempts.unwrap_or((0, decided.since));
                metrics::placed(before + 1, since);
                self.resolve(pod);
            }
            Err(error) if is_in_doubt(error) => {
                warn!(pod = %key, %error, "the binding may still be made");
                self.assumed.add(pod, node);
            }
            // Other Pods may have been unschedulable because of this one.
            Err(_) => self.wake(&ClusterEvent::left(pod.clone())),
        }
    }

    fn keep_unschedulable(&self, decided: &Decided, rejectors: PluginSet, waits: bool) {
        let Decided { pod, observed, .. } = decided;
        let Some(profile) = self.profiles.get(pod).cloned() else {
            return;
        };
        let key = &pod.meta.key;
        let refusal = Refusal {
            pod: pod.clone(),
            profile,
            since: decided.since,
            rejectors,
            waits,
        };
        self.unschedulable.add(refusal, observed, &self.queue);
        // The Pod may have changed before it was added.
        let cached = self
            .caches
            .pods
            .get(key)
            .filter(|now| now.meta.uid == pod.meta.uid);
        if cached.is_none_or(|pod| pod.schedulable().is_none()) {
            self.unschedulable.remove(key);
        }
    }

    /// Removes a Pod that is bound or deleted. If its binding was assumed, its resources may be free now: wakes the
    /// others.
    pub(super) fn resolve(&self, pod: &PodView) {
        self.unschedulable.remove(&pod.meta.key);
        if let Some(binding) = self.assumed.resolve(&pod.meta.key) {
            self.wake(&ClusterEvent::left(binding.pod));
        }
    }
}

/// Awaits a write. After a panic its outcome is unknown, as after a lost connection.
pub async fn answered(
    write: impl Future<Output = Result<Receipt, ApiError>>,
) -> Result<Receipt, ApiError> {
    let panicked = |_| Err(ApiError::new(Reason::InternalError, "the write panicked"));
    catch_panic("schedule", write)
        .await
        .unwrap_or_else(panicked)
}
