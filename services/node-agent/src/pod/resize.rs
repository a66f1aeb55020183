//! In-place resizes: how a container gets the resources that its node has allocated to it. Pure.
//!
//! ```text
//! spec ─▶ (fits?) allocated ─▶ (runtime, or a restart) actual
//!           │ no
//!           └─▶ PodResizePending      allocated ≠ actual: PodResizeInProgress
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;

use setpoint_model::condition;
use setpoint_model::pod::{RESIZE_IN_PROGRESS, RESIZE_PENDING};
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, Pod, ResourceRequirements};
use setpoint_proto::meta::Quantity;
use setpoint_runtime::{PodResources, State};

use crate::pod::demand::resizable;
use crate::pod::pod_resources;
use crate::pod::world::{AssignedPod, Runs, World};

/// The resources that can be changed.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Returns the place of a Pod among those that wait for a resize, as in the kubelet: by priority, then Guaranteed Pods,
/// then those that wait for longest.
pub fn rank(pod: &Pod) -> impl Ord + use<> {
    let pending = condition::get(&pod.status.conditions, RESIZE_PENDING);
    let since = pending.and_then(|pending| pending.last_transition_time.timestamp());
    (
        Reverse(pod.spec.priority.unwrap_or_default()),
        pod.status.qos_class != "Guaranteed",
        since.is_none(),
        since,
    )
}

impl AssignedPod {
    /// Returns the resources that the Pod has as a whole.
    pub fn resources_of_pod(&self, world: &World) -> Option<PodResources> {
        world.sandbox()?.config.resources
    }

    /// Returns the resources that the Pod is to have as a whole, if it has others and the runtime limits any. After a
    /// restart of the agent it is not known which it has.
    pub fn wanted_of_pod(&self, world: &World) -> Option<PodResources> {
        world.sandbox().filter(|_| self.runs == Runs::Images)?;
        let wanted = pod_resources::of(&self.object.spec)?;
        (self.resources_of_pod(world) != Some(wanted)).then_some(wanted)
    }

    /// Returns whether containers do not have the resources that are allocated to them yet.
    pub fn is_resizing(&self, world: &World) -> bool {
        let mut containers = resizable(&self.object.spec);
        self.wanted_of_pod(world).is_some()
            || containers.any(|container| {
                let running = world.running(&container.name);
                let has = running.and_then(|running| running.resources.as_ref());
                has.is_some_and(|has| Change::between(has, container).is_some())
                    || self.is_stopped_for_resize(world, container)
            })
    }

    /// Returns whether a container has ended during a resize that demands its restart.
    pub fn is_stopped_for_resize(&self, world: &World, container: &Container) -> bool {
        let reported = &self.object.status.conditions;
        let Some(began) = condition::get(reported, RESIZE_IN_PROGRESS)
            .and_then(|resizing| resizing.last_transition_time.timestamp())
        else {
            return false;
        };
        let latest = world
            .sandbox()
            .and_then(|known| known.latest(&container.name));
        latest.is_some_and(|latest| {
            let has = latest.resources.as_ref();
            matches!(&latest.state, State::Exited(exit) if exit.finished >= began)
                && resizable(&self.object.spec).any(|known| known.name == container.name)
                && has.and_then(|has| Change::between(has, container)) == Some(Change::Restart)
        })
    }
}

/// The way of a container to other resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The runtime changes them while the container runs.
    InPlace,
    /// The container is restarted, as its resize policy demands.
    Restart,
}

impl Change {
    /// Returns how a container gets from the resources that it has to those of its spec; `None` if it has them.
    pub fn between(has: &ResourceRequirements, container: &Container) -> Option<Self> {
        let wanted = &container.resources;
        let differs = |name: &&&str| {
            differ(&has.requests, &wanted.requests, name)
                || differ(&has.limits, &wanted.limits, name)
        };
        let restarts = |name: &&str| {
            let mut policies = container.resize_policy.iter();
            policies.any(|policy| {
                policy.resource_name == *name && policy.restart_policy == "RestartContainer"
            })
        };
        let mut changed = RESIZABLE.iter().filter(differs).peekable();
        changed.peek()?;
        match changed.any(restarts) {
            true => Some(Self::Restart),
            false => Some(Self::InPlace),
        }
    }
}

fn differ(
    has: &BTreeMap<String, Quantity>,
    wants: &BTreeMap<String, Quantity>,
    name: &str,
) -> bool {
    let amount = |list: &BTreeMap<String, Quantity>| {
        list.get(name)
            .and_then(|quantity| Amount::parse(&quantity.string).ok())
    };
    amount(has) != amount(wants)
}

#[cfg(test)]
mod tests {
    use setpoint_model::time::seconds_after;
    use setpoint_proto::core::PodCondition;

    use super::*;

    #[test]
    fn resizes_wait_by_priority_then_class_then_age() {
        let pod = |name: &str, priority: i32, class: &str, since: i64| {
            let mut pod = Pod::default();
            pod.metadata.name = name.into();
            pod.spec.priority = Some(priority);
            pod.status.qos_class = class.into();
            let at = seconds_after(jiff::Timestamp::UNIX_EPOCH, since);
            pod.status.conditions = vec![PodCondition {
                r#type: RESIZE_PENDING.into(),
                last_transition_time: at.into(),
                ..PodCondition::default()
            }];
            pod
        };
        let mut pods = [
            pod("young", 0, "Burstable", 90),
            pod("old", 0, "Burstable", 50),
            pod("guaranteed", 0, "Guaranteed", 99),
            pod("important", 7, "Burstable", 99),
        ];
        pods.sort_by_cached_key(rank);
        let names = pods.map(|pod| pod.metadata.name);
        assert_eq!(names, ["important", "guaranteed", "old", "young"]);
    }
}
