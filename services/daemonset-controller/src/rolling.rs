//! Rolling updates: Pods of old templates are replaced node by node.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Plan;
use setpoint_workload::PodView;

use crate::nodes::{NodePods, Nodes};
use crate::plan::{Changes, Found};
use crate::{Action, Strategy};

impl<'a> Nodes<'a> {
    /// Adds the Pods that a rolling update may delete or create now.
    pub fn roll(&self, plan: &mut Plan<Action>) {
        let strategy = &self.world.set.strategy;
        if *strategy == Strategy::OnDelete {
            return;
        }
        let changes = match strategy.limits(self.desired()) {
            (0, unavailable) => self.delete_old(unavailable),
            (surge, _) => self.surge(surge),
        };
        changes.add_to(plan, self);
    }

    /// Returns the nodes that count: existing ones that have Pods or should have one.
    fn counted(&self) -> impl Iterator<Item = &NodePods<'a>> {
        let counted = |on_node: &&NodePods<'_>| {
            on_node.placement.is_some() && (on_node.should_run() || !on_node.pods.is_empty())
        };
        self.iter().filter(counted)
    }

    /// Deletes old Pods that are not available, and others as long as no more than `limit` nodes are without an
    /// available Pod. The new Pods are created once the old ones are gone.
    fn delete_old(&self, limit: usize) -> Changes<'a> {
        let (mut changes, mut candidates) = (Changes::default(), Vec::new());
        let mut unavailable: usize = 0;
        for on_node in self.counted() {
            let available = match on_node.old_and_new(&self.revisions) {
                Some((None, Some(new))) => self.world.is_available(new),
                Some((Some(old), None)) if self.world.is_available(old) => {
                    candidates.push((on_node.node, old));
                    true
                }
                Some((Some(old), None)) => {
                    let because = "it has an old template and is not available";
                    changes.delete(on_node.node, old, Found::Alive, because);
                    false
                }
                // No Pod, or so many that some are about to be deleted.
                _ => false,
            };
            unavailable = unavailable.saturating_add(usize::from(!available));
        }
        for (node, old) in candidates
            .into_iter()
            .take(limit.saturating_sub(unavailable))
        {
            let because = "it has an old template, and maxUnavailable allows its deletion";
            changes.delete(node, old, Found::Alive, because);
        }
        changes
    }

    /// Creates new Pods beside old ones that are not available, and beside up to `limit` others. An old Pod is deleted
    /// once the new one is available.
    fn surge(&self, limit: usize) -> Changes<'a> {
        let (mut changes, mut candidates, mut leaving) =
            (Changes::default(), Vec::new(), Vec::new());
        let (mut surging, mut available): (usize, usize) = (0, 0);
        for on_node in self.counted() {
            let Some((old, new)) = on_node.old_and_new(&self.revisions) else {
                surging = surging.saturating_add(1);
                continue;
            };
            let is_available = |pod: &PodView| self.world.is_available(pod);
            let one_available = old.or(new).is_some_and(is_available);
            available = available.saturating_add(usize::from(one_available));
            match (old, new) {
                (None, _) => {}
                // The new one is not available: otherwise `sync` deletes the old one first.
                (Some(_), Some(_)) => surging = surging.saturating_add(1),
                (Some(old), None) if !on_node.should_run() && !is_available(old) => {
                    let because = "it is not available, and the node would get no new Pod";
                    changes.delete(on_node.node, old, Found::Alive, because);
                }
                (Some(old), None) if !on_node.should_run() => leaving.push((on_node.node, old)),
                (Some(old), None) if !is_available(old) => {
                    let because = "the Pod of an old template is not available";
                    changes.create(on_node.node, because);
                }
                (Some(_), None) => candidates.push(on_node.node),
            }
        }
        for (node, old) in leaving
            .into_iter()
            .take(available.saturating_sub(self.desired()))
        {
            let because = "enough other Pods are available, and the node would get no new Pod";
            changes.delete(node, old, Found::Alive, because);
        }
        for node in candidates.into_iter().take(limit.saturating_sub(surging)) {
            changes.create(
                node,
                "the Pod has an old template, and maxSurge allows another",
            );
        }
        changes
    }
}
