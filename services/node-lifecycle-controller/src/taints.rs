//! The taints that follow from the conditions of a node.

use std::fmt;

use jiff::Timestamp;
use setpoint_model::condition;
use setpoint_proto::core::Taint;

use crate::{NodeView, Ready};

pub(crate) const NO_SCHEDULE: &str = "NoSchedule";
pub(crate) const NO_EXECUTE: &str = "NoExecute";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Conditions that are true if something is wrong, and their taints.
const PROBLEMS: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    (
        "NetworkUnavailable",
        "node.kubernetes.io/network-unavailable",
    ),
];

/// A change of the taints of a node.
#[derive(Clone, Default, PartialEq)]
pub struct TaintChange {
    /// Those that are added.
    pub add: Vec<Taint>,
    /// Those that are removed.
    pub remove: Vec<Taint>,
}

/// Writes the taints as `kubectl taint` takes them, since plans are printed for users.
impl fmt::Debug for TaintChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let added = self.add.iter().map(|taint| ("+", taint));
        let removed = self.remove.iter().map(|taint| ("-", taint));
        for (index, (sign, taint)) in added.chain(removed).enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{sign}{}:{}", taint.key, taint.effect)?;
        }
        Ok(())
    }
}

impl TaintChange {
    /// Returns whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Returns the taints of a node after the change.
    pub fn apply(&self, taints: &[Taint]) -> Vec<Taint> {
        let goes = |taint: &&Taint| !self.remove.iter().any(|one| is_same(one, taint));
        let kept = taints.iter().filter(goes).cloned();
        kept.chain(self.add.iter().cloned()).collect()
    }

    /// Adds the differences between the taints of a node with `effect` and one of these keys, and those that it should
    /// have.
    fn toward(
        &mut self,
        node: &NodeView,
        effect: &str,
        keys: &[&str],
        wanted: &[&str],
        now: Timestamp,
    ) {
        let has = |key: &str| {
            node.taints
                .iter()
                .any(|one| one.key == key && one.effect == effect)
        };
        let missing = wanted.iter().filter(|key| !has(key));
        self.add.extend(missing.map(|key| Taint {
            key: (*key).to_owned(),
            effect: effect.to_owned(),
            time_added: Some(now.into()),
            ..Taint::default()
        }));
        let surplus = node.taints.iter().filter(|one| {
            let key = one.key.as_str();
            one.effect == effect && keys.contains(&key) && !wanted.contains(&key)
        });
        self.remove.extend(surplus.cloned());
    }
}

fn is_same(one: &Taint, other: &Taint) -> bool {
    one.key == other.key && one.effect == other.effect
}

/// Returns the change after which a node has the taints with the effect NoSchedule that its conditions call for. Other
/// taints are left alone.
pub fn no_schedule(node: &NodeView, now: Timestamp) -> TaintChange {
    let holds = |kind: &&(&str, &str)| condition::is_true(&node.conditions, kind.0);
    let mut wanted: Vec<_> = PROBLEMS
        .iter()
        .filter(holds)
        .map(|(_, taint)| *taint)
        .collect();
    wanted.extend(of_ready(node.ready()));
    wanted.extend(node.unschedulable.then_some(UNSCHEDULABLE));
    let problems = PROBLEMS.iter().map(|(_, taint)| *taint);
    let keys: Vec<_> = problems
        .chain([NOT_READY, UNREACHABLE, UNSCHEDULABLE])
        .collect();
    let mut change = TaintChange::default();
    change.toward(node, NO_SCHEDULE, &keys, &wanted, now);
    change
}

/// Returns the change after which a node has the taint with the effect NoExecute that its condition `Ready` calls for;
/// none if `executes` is false.
pub fn no_execute(node: &NodeView, executes: bool, now: Timestamp) -> TaintChange {
    let wanted = of_ready(node.ready()).filter(|_| executes);
    let mut change = TaintChange::default();
    change.toward(
        node,
        NO_EXECUTE,
        &[NOT_READY, UNREACHABLE],
        wanted.as_slice(),
        now,
    );
    change
}

fn of_ready(ready: Ready) -> Option<&'static str> {
    match ready {
        Ready::No => Some(NOT_READY),
        Ready::Unknown => Some(UNREACHABLE),
        Ready::Yes | Ready::Never => None,
    }
}

/// Returns whether a node has a taint with the effect NoExecute that says that it is not ready.
pub fn is_executed(node: &NodeView) -> bool {
    let keys = [NOT_READY, UNREACHABLE];
    let mut taints = node.taints.iter();
    taints.any(|one| one.effect == NO_EXECUTE && keys.contains(&one.key.as_str()))
}
