//! Chooses the Pod that is evicted, in the kubelet's order and words. Pure.

use std::cmp::Reverse;

use setpoint_model::quantity::Amount;

use super::pressure::Observation;
use super::threshold::Threshold;
use crate::node::CRITICAL;

/// A Pod that may be evicted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Its uid.
    pub uid: String,
    /// Its priority.
    pub priority: i32,
    /// Its use of the resource, in bytes or files; `None` if that is unknown.
    pub usage: Option<i64>,
    /// Its request of the resource.
    pub request: i64,
    /// Its containers.
    pub containers: Vec<Consumption>,
}

/// The use and the request of a resource by a container, in bytes or files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consumption {
    /// Name of the container.
    pub name: String,
    /// The use.
    pub usage: i64,
    /// The request.
    pub request: i64,
}

/// Returns the Pod to evict; `None` if all are critical.
pub fn choose(candidates: &[Candidate]) -> Option<&Candidate> {
    let evictable = candidates.iter().filter(|pod| pod.priority < CRITICAL);
    evictable.min_by_key(|candidate| rank(candidate))
}

/// Returns the place of a Pod in the order of evictions: those of unknown usage, then those that use more than they
/// request; among these, the lowest priority; then, the largest usage beyond the request.
fn rank(candidate: &Candidate) -> impl Ord {
    let excess = candidate
        .usage
        .map_or(0, |usage| usage.saturating_sub(candidate.request));
    let within = candidate.usage.is_some() && excess <= 0;
    (
        candidate.usage.is_some(),
        within,
        candidate.priority,
        Reverse(excess),
        candidate.uid.clone(),
    )
}

/// Returns the message for an evicted Pod.
pub fn message(threshold: &Threshold, observed: Observation, pod: &Candidate) -> String {
    let files = threshold.signal.counts_files();
    let quantity = |amount| match (files, Amount::from_value(amount)) {
        (true, amount) => amount.canonical(),
        (false, amount) => amount.in_binary().canonical(),
    };
    let resource = threshold.signal.resource();
    let size = quantity(threshold.size.of(observed.capacity));
    let available = quantity(observed.available);
    let mut message = format!(
        "The node was low on resource: {resource}. Threshold quantity: {size}, available: {available}. "
    );
    // Nothing can request inodes.
    let greedy = |one: &&Consumption| !files && one.usage > one.request;
    for Consumption {
        name,
        usage,
        request,
    } in pod.containers.iter().filter(greedy)
    {
        message += &format!(
            "Container {name} was using {}, request is {}, has larger consumption of {resource}. ",
            quantity(*usage),
            quantity(*request)
        );
    }
    message
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::threshold::{Signal, Size};
    use super::*;

    fn candidate(uid: &str, priority: i32, usage: Option<i64>, request: i64) -> Candidate {
        Candidate {
            uid: uid.into(),
            priority,
            usage,
            request,
            containers: Vec::new(),
        }
    }

    #[test]
    fn pods_are_evicted_by_usage_beyond_requests_then_priority_then_excess() {
        let mut pods = vec![
            candidate("6-within, high", 7, Some(100), 100),
            candidate("5-within", 0, Some(1), 100),
            candidate("4-beyond, high", 7, Some(900), 0),
            candidate("3-beyond", 0, Some(101), 100),
            candidate("2-far beyond", 0, Some(900), 100),
            candidate("1-unknown", 9, None, 0),
            candidate("7-critical", CRITICAL, Some(9000), 0),
        ];
        let mut order = Vec::new();
        while let Some(chosen) = choose(&pods).map(|pod| pod.uid.clone()) {
            pods.retain(|pod| pod.uid != chosen);
            order.push(chosen[..1].to_owned());
        }
        assert_eq!(order, ["1", "2", "3", "4", "5", "6"]);
    }

    #[test]
    fn the_message_names_the_threshold_and_the_containers_beyond_their_requests() {
        let threshold = Threshold {
            signal: Signal::Memory,
            size: Size::Percent(10.0),
            grace: None,
            reclaim: None,
        };
        let observed = Observation {
            available: 50 << 20,
            capacity: 1 << 30,
        };
        let consumption = |name: &str, usage: i64, request: i64| Consumption {
            name: name.into(),
            usage: usage << 10,
            request: request << 20,
        };
        let pod = Candidate {
            containers: vec![consumption("web", 200_000, 64), consumption("log", 1, 64)],
            ..Candidate::default()
        };
        assert_eq!(
            message(&threshold, observed, &pod),
            "The node was low on resource: memory. Threshold quantity: 107374182, available: 50Mi. \
             Container web was using 200000Ki, request is 64Mi, has larger consumption of memory. "
        );
    }

    #[test]
    fn the_message_about_inodes_blames_no_container() {
        let threshold = Threshold {
            signal: Signal::NodefsInodes,
            size: Size::Absolute(1 << 20),
            grace: None,
            reclaim: None,
        };
        let observed = Observation {
            available: 5000,
            capacity: 1 << 30,
        };
        let pod = Candidate {
            containers: vec![Consumption {
                name: "web".into(),
                usage: 7,
                request: 0,
            }],
            ..Candidate::default()
        };
        assert_eq!(
            message(&threshold, observed, &pod),
            "The node was low on resource: inodes. Threshold quantity: 1048576, available: 5k. "
        );
    }

    proptest! {
        /// The choice does not depend on the order, never falls on a critical Pod, and spares those within their
        /// requests while there are others.
        #[test]
        fn the_choice_is_independent_of_the_order_and_spares_modest_pods(
            pods in prop::collection::vec((0_i32..3, prop::option::of(0_i64..4), 0_i64..4, any::<bool>()), 1..8),
            turn in 0_usize..8,
        ) {
            let pods = pods.into_iter().enumerate().map(|(index, (priority, usage, request, critical))| {
                candidate(&index.to_string(), if critical { CRITICAL } else { priority }, usage, request)
            });
            let mut pods: Vec<_> = pods.collect();
            let chosen = choose(&pods).cloned();
            let turn = turn % pods.len();
            pods.rotate_left(turn);
            prop_assert_eq!(choose(&pods).cloned(), chosen.clone());
            let greedy = |pod: &Candidate| pod.usage.is_none_or(|usage| usage > pod.request);
            match chosen {
                None => prop_assert!(pods.iter().all(|pod| pod.priority >= CRITICAL)),
                Some(chosen) => {
                    prop_assert!(chosen.priority < CRITICAL);
                    let others = pods.iter().any(|pod| pod.priority < CRITICAL && greedy(pod));
                    prop_assert_eq!(greedy(&chosen), others);
                }
            }
        }
    }
}
