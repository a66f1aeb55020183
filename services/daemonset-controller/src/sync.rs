//! Manage: one Pod on each node that should run the set, none on nodes that must not.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Plan;
use setpoint_workload::{Phase, PodView};

use crate::nodes::{NodePods, Nodes};
use crate::plan::{Changes, Found};
use crate::{Action, Placement};

impl<'a> Nodes<'a> {
    /// Adds the creates and deletes after which each node has the number of Pods that it should have.
    pub fn sync(&self, plan: &mut Plan<Action>) {
        let mut changes = Changes::default();
        for on_node in self.iter() {
            match on_node.placement {
                Some(Placement::Run) if on_node.pods.is_empty() => {
                    changes.create(on_node.node, "the node should run a Pod and has none");
                }
                Some(Placement::Run | Placement::Stay) => {
                    self.keep_one(on_node, &mut changes, plan)
                }
                Some(Placement::Leave) => {
                    let because = "the node must not run the Pod";
                    delete_all(on_node, Found::Alive, because, &mut changes);
                }
                None => delete_all(
                    on_node,
                    Found::Lost,
                    "its node does not exist",
                    &mut changes,
                ),
            }
        }
        changes.add_to(plan, self);
    }

    fn keep_one(&self, on_node: &NodePods<'a>, changes: &mut Changes<'a>, plan: &mut Plan<Action>) {
        let mut running = Vec::new();
        for pod in on_node.live() {
            match pod.phase {
                Phase::Failed => self.delete_failed(on_node, pod, changes, plan),
                Phase::Succeeded => {
                    changes.delete(on_node.node, pod, Found::Succeeded, "it has succeeded");
                }
                _ => running.push(pod),
            }
        }
        if !self.world.set.strategy.allows_surge() {
            for pod in running.iter().skip(1) {
                let because = "the node has an older Pod of the set";
                changes.delete(on_node.node, pod, Found::Alive, because);
            }
        } else if on_node.should_run() && on_node.live().next().is_none() {
            // Unlike upstream, none is created beside a failed Pod whose deletion is delayed: it may fail, too.
            changes.create(
                on_node.node,
                "the node has only Pods that are being deleted",
            );
        } else {
            self.keep_old_and_new(on_node, &running, changes);
        }
    }

    fn delete_failed(
        &self,
        on_node: &NodePods<'a>,
        pod: &'a PodView,
        changes: &mut Changes<'a>,
        plan: &mut Plan<Action>,
    ) {
        let (backoff, now) = (self.world.backoffs.get(on_node.node), self.world.now);
        match backoff.map(|backoff| backoff.wait(now)) {
            Some(wait) if !wait.is_zero() => plan.look_again(wait),
            _ => changes.delete(on_node.node, pod, Found::Failed, "it has failed"),
        }
    }

    /// Keeps the oldest Pod of the current template and, until that one is available, the oldest of an old template if
    /// it is ready.
    fn keep_old_and_new(
        &self,
        on_node: &NodePods<'a>,
        running: &[&'a PodView],
        changes: &mut Changes<'a>,
    ) {
        let is_new = |pod: &&PodView| self.revisions.is_updated(pod);
        let (new, old): (Vec<_>, Vec<_>) = running.iter().copied().partition(is_new);
        for pod in new.iter().chain(&old).filter(|pod| {
            let kept = [new.first(), old.first()];
            !kept
                .into_iter()
                .flatten()
                .any(|kept| kept.meta.uid == pod.meta.uid)
        }) {
            let because = "the node has an older Pod of this template";
            changes.delete(on_node.node, pod, Found::Alive, because);
        }
        let (Some(new), Some(old)) = (new.first(), old.first()) else {
            return;
        };
        if old.ready_since.is_none() {
            let because = "it is not ready, and the node has a Pod of the current template";
            changes.delete(on_node.node, old, Found::Alive, because);
        } else if self.world.is_available(new) {
            let because = "the Pod of the current template is available";
            changes.delete(on_node.node, old, Found::Alive, because);
        }
    }
}

fn delete_all<'a>(
    on_node: &NodePods<'a>,
    found: Found,
    because: &'static str,
    changes: &mut Changes<'a>,
) {
    for pod in on_node.live() {
        changes.delete(on_node.node, pod, found, because);
    }
}
