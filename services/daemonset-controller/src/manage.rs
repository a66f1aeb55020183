//! Manage: one Pod on each node that should run the set, none on nodes that must not.
#![warn(clippy::arithmetic_side_effects)]

use setpoint_controller::Plan;
use setpoint_workload::{Phase, PodView};

use crate::plan::{Changes, Found};
use crate::sites::{Site, Sites};
use crate::{Action, Verdict};

impl<'a> Sites<'a> {
    /// Adds the creates and deletes after which each node has the number of Pods that it should have.
    pub fn manage(&self, plan: &mut Plan<Action>) {
        let mut changes = Changes::default();
        for site in self.iter() {
            match site.verdict {
                Some(Verdict::Run) if site.pods.is_empty() => {
                    changes.create(site.node, "the node should run a Pod and has none");
                }
                Some(Verdict::Run | Verdict::Stay) => self.keep_one(site, &mut changes, plan),
                Some(Verdict::Leave) => {
                    let because = "the node must not run the Pod";
                    delete_all(site, Found::Alive, because, &mut changes);
                }
                None => delete_all(site, Found::Lost, "its node does not exist", &mut changes),
            }
        }
        changes.add_to(plan, self);
    }

    fn keep_one(&self, site: &Site<'a>, changes: &mut Changes<'a>, plan: &mut Plan<Action>) {
        let mut running = Vec::new();
        for pod in site.live() {
            match pod.phase {
                Phase::Failed => self.delete_failed(site, pod, changes, plan),
                Phase::Succeeded => {
                    changes.delete(site.node, pod, Found::Succeeded, "it has succeeded");
                }
                _ => running.push(pod),
            }
        }
        if !self.world.set.strategy.allows_surge() {
            for pod in running.iter().skip(1) {
                let because = "the node has an older Pod of the set";
                changes.delete(site.node, pod, Found::Alive, because);
            }
        } else if site.should_run() && site.live().next().is_none() {
            // Unlike upstream, none is created beside a failed Pod whose deletion is delayed: it may fail, too.
            changes.create(site.node, "the node has only Pods that are being deleted");
        } else {
            self.keep_old_and_new(site, &running, changes);
        }
    }

    fn delete_failed(
        &self,
        site: &Site<'a>,
        pod: &'a PodView,
        changes: &mut Changes<'a>,
        plan: &mut Plan<Action>,
    ) {
        let (backoff, now) = (self.world.backoffs.get(site.node), self.world.now);
        match backoff.map(|backoff| backoff.wait(now)) {
            Some(wait) if !wait.is_zero() => plan.look_again(wait),
            _ => changes.delete(site.node, pod, Found::Failed, "it has failed"),
        }
    }

    /// Keeps the oldest Pod of the current template and, until that one is available, the oldest of an old template if it is
    /// ready.
    fn keep_old_and_new(
        &self,
        site: &Site<'a>,
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
            changes.delete(site.node, pod, Found::Alive, because);
        }
        let (Some(new), Some(old)) = (new.first(), old.first()) else {
            return;
        };
        if old.ready_since.is_none() {
            let because = "it is not ready, and the node has a Pod of the current template";
            changes.delete(site.node, old, Found::Alive, because);
        } else if self.world.is_available(new) {
            let because = "the Pod of the current template is available";
            changes.delete(site.node, old, Found::Alive, because);
        }
    }
}

fn delete_all<'a>(site: &Site<'a>, found: Found, because: &'static str, changes: &mut Changes<'a>) {
    for pod in site.live() {
        changes.delete(site.node, pod, found, because);
    }
}
