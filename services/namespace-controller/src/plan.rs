//! Plan: deletes the Pods of the namespace, then everything else, then removes the finalizer of the content.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{Plan, Whole};
use setpoint_proto::core::Namespace;

use crate::{Content, Failure, Item, status};

/// The finalizer in the spec that stands for the content.
pub(crate) const CONTENT: &str = "kubernetes";

/// The largest number of deletions in one plan.
pub const BURST: usize = 500;

/// The delay before the content is read again after deletions: objects without finalizers are gone by then.
const SOON: Duration = Duration::from_millis(20);
/// The delay before content that cannot be deleted at once is read again. The end of the last Pod is noticed at once.
const RECHECK: Duration = Duration::from_secs(5);
/// The delay after a read that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Everything that the decision about one namespace depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The namespace, which is being deleted.
    pub namespace: Arc<Whole<Namespace>>,
    /// Its content.
    pub content: Content,
    /// The API groups with versions of other API servers that do not answer, for example `metrics.k8s.io/v1beta1`, in
    /// their order: they may have further content.
    pub undiscovered: Vec<String>,
    /// The kinds whose objects could not be deleted, by resource.
    pub failures: BTreeMap<String, Failure>,
    /// The time.
    pub now: Timestamp,
}

/// A step of the deletion of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Delete an object.
    Delete(Item),
    /// Remove the finalizer that stands for the content.
    Finalize,
}

/// Plans for one namespace. It is not finalized before all API servers have answered.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    match &world.content {
        Content::Unread => plan.look_again(RETRY),
        Content::Foreign => {}
        Content::Known(items) if items.is_empty() && !world.undiscovered.is_empty() => {
            plan.look_again(RECHECK);
        }
        Content::Known(items) if items.is_empty() => {
            let spec = &world.namespace.object.spec;
            let is_held = spec.finalizers.iter().any(|held| held == CONTENT);
            if is_held && status::of_content(world, None).is_none() {
                plan.step(Action::Finalize, "nothing is left in the namespace");
            }
        }
        Content::Known(items) => delete(world, items, &mut plan),
    }
    plan
}

fn delete(world: &World, items: &[Item], plan: &mut Plan<Action>) {
    // Services, ConfigMaps and policies are deleted after the Pods, which may rely on them.
    let pods_remain = items.iter().any(Item::is_pod);
    let because = match pods_remain {
        true => "its namespace is being deleted",
        false => "its namespace is being deleted and has no more Pods",
    };
    let now = items
        .iter()
        .filter(|item| !item.deleting && item.is_pod() == pods_remain);
    let mut now: Vec<_> = now.collect();
    // No step is started after the first failure, so kinds that fail do not keep the others waiting.
    let failures = |item: &Item| world.failures.get(&item.resource).map_or(0, |it| it.times);
    now.sort_by(|a, b| (failures(a), a).cmp(&(failures(b), b)));
    for item in now.into_iter().take(BURST) {
        plan.step(Action::Delete(item.clone()), because);
    }
    plan.look_again(if plan.is_empty() { RECHECK } else { SOON });
}
