//! The score by which the kernel chooses a container when memory is short (`oom_score_adj`), as the kubelet's. Pure.

use std::collections::BTreeMap;

use setpoint_model::qos_class;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::{Container, PodSpec};
use setpoint_proto::meta::Quantity;

/// Of containers that request what they may use, and of Pods that the node cannot do without.
const GUARANTEED: i64 = -997;
/// Of containers that request nothing.
const BEST_EFFORT: i64 = 1000;
/// The priority class of Pods that the node cannot do without.
const NODE_CRITICAL: &str = "system-node-critical";

/// Returns the score of a container on a node with these allocatable resources: the more memory a Burstable one
/// requests, the lower it is. The kubelet compares with the whole memory of the node, which is a little more.
pub fn of(spec: &PodSpec, container: &Container, node: &BTreeMap<String, Quantity>) -> i64 {
    match qos_class(spec) {
        _ if spec.priority_class_name == NODE_CRITICAL => GUARANTEED,
        "Guaranteed" => GUARANTEED,
        "BestEffort" => BEST_EFFORT,
        _ => {
            let memory = |list: &BTreeMap<String, Quantity>| {
                let found = list.get("memory");
                let amount = found.and_then(|quantity| Amount::parse(&quantity.string).ok());
                amount.map_or(0, Amount::value)
            };
            let share = memory(&container.resources.requests).saturating_mul(1000);
            let share = share.checked_div(memory(node)).unwrap_or_default();
            // Below those that request nothing, and above those that request all.
            BEST_EFFORT
                .saturating_sub(share)
                .clamp(BEST_EFFORT + GUARANTEED, BEST_EFFORT - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of upstream's `GetContainerOOMScoreAdjust`.
    #[test]
    fn the_score_follows_the_class_and_the_request() {
        let node = BTreeMap::from([("memory".to_owned(), Quantity::new("8Gi"))]);
        let score = |request: &str, limit: &str| {
            let list = |amount: &str| match amount {
                "" => BTreeMap::new(),
                amount => ["cpu", "memory"]
                    .map(|name| (name.to_owned(), Quantity::new(amount)))
                    .into(),
            };
            let mut container = Container::default();
            container.resources.requests = list(request);
            container.resources.limits = list(limit);
            let spec = PodSpec {
                containers: vec![container.clone()],
                ..PodSpec::default()
            };
            of(&spec, &container, &node)
        };
        assert_eq!(score("", ""), 1000);
        assert_eq!(score("1Gi", "1Gi"), -997);
        assert_eq!(score("1Gi", "2Gi"), 875);
        assert_eq!(score("1Mi", ""), 999);
        assert_eq!(score("8Gi", "9Gi"), 3);
        let critical = PodSpec {
            priority_class_name: "system-node-critical".into(),
            ..PodSpec::default()
        };
        assert_eq!(of(&critical, &Container::default(), &node), -997);
    }
}
