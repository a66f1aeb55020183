//! NodeResourcesFit: the resources that a Pod requests are free on its node; nodes are preferred by what is left.

#![warn(clippy::arithmetic_side_effects)]

use std::borrow::Cow;

use setpoint_model::Resources;

use crate::cluster_event::ClusterEvent;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::reason::FilterReason;
use crate::snapshot::NodeInfo;

/// Returns why the node cannot take the Pod: every resource of which too little is left.
pub fn filter(pod: &PodView, node: &NodeInfo) -> Vec<FilterReason> {
    let view = &node.view;
    let full = (node.pods >= view.max_pods).then_some(FilterReason::TooManyPods);
    let lacking = view.allocatable.lacking(&node.used, &pod.requests);
    let insufficient = lacking.map(|name| FilterReason::Insufficient {
        resource: known(name),
        even_if_empty: exceeds(view, pod).any(|exceeded| exceeded == name),
    });
    full.into_iter().chain(insufficient).collect()
}

/// Returns the resources of which the Pod requests more than the node has without Pods.
fn exceeds<'a>(node: &'a NodeView, pod: &'a PodView) -> impl Iterator<Item = &'a str> {
    const NOTHING: &Resources = &Resources {
        millicpu: 0,
        memory: 0,
        others: std::collections::BTreeMap::new(),
    };
    node.allocatable.lacking(NOTHING, &pod.requests)
}

/// Avoids an allocation for each of many nodes.
fn known(resource: &str) -> Cow<'static, str> {
    match resource {
        "cpu" => Cow::Borrowed("cpu"),
        "memory" => Cow::Borrowed("memory"),
        other => Cow::Owned(other.to_owned()),
    }
}

/// Returns whether a change may let the Pod fit: a Pod leaves or requests less, or a node that is large enough has
/// more.
pub fn hint(pod: &PodView, change: &ClusterEvent) -> bool {
    match change {
        ClusterEvent::Pod {
            old: Some(_),
            new: None,
        } => true,
        ClusterEvent::Pod {
            old: Some(old),
            new: Some(new),
        } => grows(&new.requests, &old.requests, &pod.requests),
        ClusterEvent::Node {
            old,
            new: Some(new),
        } => {
            let larger = |old: &NodeView| {
                new.max_pods > old.max_pods
                    || grows(&old.allocatable, &new.allocatable, &pod.requests)
            };
            new.max_pods > 0
                && exceeds(new, pod).next().is_none()
                && old.as_deref().is_none_or(larger)
        }
        _ => false,
    }
}

/// Returns whether `to` has more than `from` of a resource that is wanted.
fn grows(from: &Resources, to: &Resources, wanted: &Resources) -> bool {
    let other = |of: &Resources, name: &str| of.others.get(name).copied().unwrap_or_default();
    (wanted.millicpu > 0 && to.millicpu > from.millicpu)
        || (wanted.memory > 0 && to.memory > from.memory)
        || wanted
            .others
            .keys()
            .any(|name| other(to, name) > other(from, name))
}
