//! Tests of the nodes that a DaemonSet runs on.

use setpoint_controller::View;
use setpoint_daemonset_controller::{DaemonSetView, NodeView, Placement, Strategy};
use setpoint_proto::apps::DaemonSet;
use setpoint_proto::core::{
    Affinity, Node, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint,
    Toleration,
};
use setpoint_proto::meta::IntOrString;

fn node(labels: &[(&str, &str)], taints: &[(&str, &str)]) -> NodeView {
    let mut node = Node::default();
    node.metadata.name = "one".into();
    let labels = labels.iter();
    node.metadata.labels = labels
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let taint = |(key, effect): &(&str, &str)| Taint {
        key: (*key).into(),
        effect: (*effect).into(),
        ..Default::default()
    };
    node.spec.taints = taints.iter().map(taint).collect();
    NodeView::of(node)
}

fn placement(set: &DaemonSet, taints: &[(&str, &str)]) -> Placement {
    DaemonSetView::of(set.clone()).placement(&node(&[], taints))
}

#[test]
fn taints_decide_whether_a_pod_is_created_and_whether_it_stays() {
    let plain = DaemonSet::default();
    assert_eq!(placement(&plain, &[]), Placement::Run);
    assert_eq!(
        placement(&plain, &[("gpu", "PreferNoSchedule")]),
        Placement::Run
    );
    assert_eq!(placement(&plain, &[("gpu", "NoSchedule")]), Placement::Stay);
    assert_eq!(placement(&plain, &[("gpu", "NoExecute")]), Placement::Leave);
    let both = [("gpu", "NoSchedule"), ("disk", "NoExecute")];
    assert_eq!(placement(&plain, &both), Placement::Leave);
    let mut tolerant = DaemonSet::default();
    tolerant.spec.template.spec.tolerations = vec![Toleration {
        key: "disk".into(),
        operator: "Exists".into(),
        ..Default::default()
    }];
    assert_eq!(placement(&tolerant, &both), Placement::Stay);
}

#[test]
fn conditions_of_the_node_are_tolerated() {
    let mut set = DaemonSet::default();
    let tainted = |set: &DaemonSet, condition: &str, effect: &str| {
        let key = format!("node.kubernetes.io/{condition}");
        placement(set, &[(&key, effect)])
    };
    for condition in [
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
    ] {
        assert_eq!(
            tainted(&set, condition, "NoSchedule"),
            Placement::Run,
            "{condition}"
        );
        assert_eq!(tainted(&set, condition, "NoExecute"), Placement::Leave);
    }
    for condition in ["not-ready", "unreachable"] {
        assert_eq!(
            tainted(&set, condition, "NoExecute"),
            Placement::Run,
            "{condition}"
        );
        assert_eq!(tainted(&set, condition, "NoSchedule"), Placement::Stay);
    }
    let network = "network-unavailable";
    assert_eq!(tainted(&set, network, "NoSchedule"), Placement::Stay);
    set.spec.template.spec.host_network = true;
    assert_eq!(tainted(&set, network, "NoSchedule"), Placement::Run);
}

#[test]
fn a_toleration_of_the_user_for_a_limited_time_becomes_unlimited() {
    let mut set = DaemonSet::default();
    set.spec.template.spec.tolerations = vec![Toleration {
        key: "node.kubernetes.io/not-ready".into(),
        operator: "Exists".into(),
        effect: "NoExecute".into(),
        toleration_seconds: Some(30),
        ..Default::default()
    }];
    let tolerations = DaemonSetView::of(set).template.spec.tolerations;
    assert_eq!(tolerations.len(), 6);
    assert!(
        tolerations
            .iter()
            .all(|one| one.toleration_seconds.is_none())
    );
}

#[test]
fn selector_affinity_and_name_restrict_the_nodes() {
    let mut set = DaemonSet::default();
    set.spec.template.spec.node_selector = [("disk".to_owned(), "ssd".to_owned())].into();
    let on = |set: &DaemonSet, labels: &[(&str, &str)]| {
        DaemonSetView::of(set.clone()).placement(&node(labels, &[]))
    };
    assert_eq!(on(&set, &[("disk", "ssd")]), Placement::Run);
    assert_eq!(on(&set, &[("disk", "hdd")]), Placement::Leave);
    let in_zone = NodeSelectorRequirement {
        key: "zone".into(),
        operator: "In".into(),
        values: vec!["a".into()],
    };
    let required = NodeSelector {
        node_selector_terms: vec![NodeSelectorTerm {
            match_expressions: vec![in_zone],
            ..Default::default()
        }],
    };
    set.spec.template.spec.affinity = Some(Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(required),
            ..Default::default()
        }),
        ..Default::default()
    });
    assert_eq!(on(&set, &[("disk", "ssd")]), Placement::Leave);
    assert_eq!(on(&set, &[("disk", "ssd"), ("zone", "a")]), Placement::Run);
    set.spec.template.spec.node_name = "other".into();
    assert_eq!(
        on(&set, &[("disk", "ssd"), ("zone", "a")]),
        Placement::Leave
    );
}

#[test]
fn an_unset_strategy_rolls_one_node_at_a_time() {
    let strategy = DaemonSetView::of(DaemonSet::default()).strategy;
    let rolling = Strategy::Rolling {
        surge: IntOrString::int(0),
        unavailable: IntOrString::int(1),
    };
    assert_eq!(strategy, rolling);
    let mut set = DaemonSet::default();
    set.spec.update_strategy.r#type = "OnDelete".into();
    assert_eq!(DaemonSetView::of(set).strategy, Strategy::OnDelete);
}

#[test]
fn the_view_of_a_node_has_nothing_of_its_heartbeats() {
    let mut heard = Node::default();
    heard
        .metadata
        .annotations
        .insert("seen".into(), "now".into());
    heard.status.conditions = vec![Default::default()];
    assert_eq!(NodeView::of(heard), NodeView::of(Node::default()));
}
