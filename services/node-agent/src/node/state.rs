//! The state of a node that decides on its conditions and on the admission of Pods.

use std::collections::BTreeSet;

use setpoint_model::placement::tolerates;
use setpoint_proto::core::{Pod, Taint};
use setpoint_runtime::Obstacle;

use crate::pod::rejection::Rejection;

/// The priority from which on a Pod is critical to its node (upstream's `SystemCriticalPriority`).
pub const CRITICAL: i32 = 2_000_000_000;

/// A shortage of a resource of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pressure {
    /// The node is short of memory.
    Memory,
    /// The node is short of space or inodes on a disk.
    Disk,
}

impl Pressure {
    /// Returns the type of the condition of the node.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
        }
    }
}

/// The state of a node beside its capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeState {
    /// The resources that it is short of.
    pub pressures: BTreeSet<Pressure>,
    /// Whether it shuts down.
    pub shutting_down: bool,
    /// The reason why its runtime cannot start Pods.
    pub obstacle: Option<Obstacle>,
}

impl NodeState {
    /// Returns whether the node admits a new Pod. Under pressure of memory alone these are the Pods that request some,
    /// or that tolerate the taint; critical and static ones always are, unless the node shuts down.
    ///
    /// # Errors
    /// With the reason.
    pub fn admit(&self, pod: &Pod, is_static: bool) -> Result<(), Rejection> {
        if self.shutting_down {
            return Err(Rejection::Shutdown);
        }
        let critical = is_static || pod.spec.priority.unwrap_or_default() >= CRITICAL;
        if self.pressures.is_empty() || critical {
            return Ok(());
        }
        let only_memory = self.pressures.iter().eq([&Pressure::Memory]);
        if only_memory && (pod.status.qos_class != "BestEffort" || tolerates_pressure(pod)) {
            return Ok(());
        }
        let conditions = self.pressures.iter().map(|pressure| pressure.condition());
        Err(Rejection::Pressure(conditions.collect()))
    }
}

fn tolerates_pressure(pod: &Pod) -> bool {
    let taint = Taint {
        key: "node.kubernetes.io/memory-pressure".to_owned(),
        effect: "NoSchedule".to_owned(),
        ..Taint::default()
    };
    tolerates(&pod.spec.tolerations, &taint)
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Toleration;

    use super::*;

    fn pod(class: &str, priority: i32) -> Pod {
        let mut pod = Pod::default();
        pod.status.qos_class = class.into();
        pod.spec.priority = Some(priority);
        pod
    }

    fn reason(state: &NodeState, pod: &Pod) -> String {
        state
            .admit(pod, false)
            .map_or_else(|rejection| rejection.message(), |()| String::new())
    }

    #[test]
    fn pressure_of_memory_keeps_out_best_effort_pods_that_do_not_tolerate_it() {
        let state = NodeState {
            pressures: [Pressure::Memory].into(),
            ..NodeState::default()
        };
        let mut modest = pod("BestEffort", 0);
        assert_eq!(
            reason(&state, &modest),
            "The node had condition: [MemoryPressure]. "
        );
        modest.spec.tolerations = vec![Toleration {
            key: "node.kubernetes.io/memory-pressure".into(),
            operator: "Exists".into(),
            ..Toleration::default()
        }];
        for admitted in [modest, pod("Burstable", 0), pod("BestEffort", CRITICAL)] {
            assert_eq!(state.admit(&admitted, false), Ok(()));
        }
    }

    #[test]
    fn pressure_of_disks_keeps_out_all_but_critical_pods() {
        let state = NodeState {
            pressures: [Pressure::Memory, Pressure::Disk].into(),
            ..NodeState::default()
        };
        let expected = "The node had condition: [MemoryPressure DiskPressure]. ";
        assert_eq!(reason(&state, &pod("Guaranteed", 0)), expected);
        assert_eq!(state.admit(&pod("BestEffort", CRITICAL), false), Ok(()));
    }

    #[test]
    fn a_node_that_shuts_down_admits_no_pod() {
        let mut state = NodeState::default();
        assert_eq!(state.admit(&pod("BestEffort", 0), false), Ok(()));
        state.shutting_down = true;
        assert_eq!(
            state.admit(&pod("Guaranteed", CRITICAL), false),
            Err(Rejection::Shutdown)
        );
    }
}
