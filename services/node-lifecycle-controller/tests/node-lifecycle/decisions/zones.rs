//! The states of zones and their rates.

use std::time::Duration;

use setpoint_controller::View as _;
use setpoint_node_lifecycle_controller::{
    EvictionLimits, Lifecycle, NodeView, Zone, ZoneState, Zones,
};

use super::node;

#[test]
fn a_zone_is_disrupted_if_many_of_its_nodes_are_not_ready() {
    let cases = [
        (0, 0, ZoneState::Normal),
        (1, 0, ZoneState::Normal),
        (0, 1, ZoneState::Full),
        (0, 9, ZoneState::Full),
        (1, 2, ZoneState::Normal),
        (1, 3, ZoneState::Partial),
        (3, 3, ZoneState::Normal),
        (9, 11, ZoneState::Partial),
        (10, 10, ZoneState::Normal),
    ];
    for (ready, not_ready, expected) in cases {
        let zone = Zone { ready, not_ready };
        assert_eq!(zone.state(0.55), expected, "{zone:?}");
    }
}

/// Returns nodes of a zone, of which the first ones are ready.
fn zone(name: &str, ready: usize, not_ready: usize) -> Vec<NodeView> {
    let nodes = (0..ready + not_ready).map(|index| {
        let status = if index < ready { "True" } else { "Unknown" };
        let mut node = node(&format!("{name}-{index}"), status);
        let label = "topology.kubernetes.io/zone".to_owned();
        node.metadata.labels.insert(label, name.to_owned());
        NodeView::of(node)
    });
    nodes.collect()
}

#[test]
fn nodes_are_tainted_at_the_rate_of_their_zone() {
    let nodes = [
        zone("normal", 9, 2),
        zone("small", 1, 49),
        zone("large", 1, 50),
        zone("down", 0, 9),
    ];
    let zones = Zones::of(nodes.iter().flatten());
    let rate = |zone: &str| zones.rate(&format!("/{zone}"), &Lifecycle::default());
    assert_eq!(
        ["normal", "small", "large", "down"].map(rate),
        [0.1, 0.0, 0.01, 0.1]
    );
    assert!(!zones.are_all_down());
}

#[test]
fn a_zone_is_named_by_the_labels_of_region_and_zone_or_their_former_names() {
    let (region, zone) = (
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    );
    let former = "failure-domain.beta.kubernetes.io/zone";
    for (labels, expected) in [
        (&[][..], ""),
        (&[(zone, "a")], "/a"),
        (&[(region, "eu")], "eu/"),
        (&[(region, "eu"), (zone, "a")], "eu/a"),
        (&[(region, "eu"), (former, "b")], "eu/b"),
        (&[(zone, "a"), (former, "b")], "/a"),
    ] {
        let mut node = node("a", "True");
        let labels = labels.iter();
        let labels = labels.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        node.metadata.labels = labels.collect();
        assert_eq!(NodeView::of(node).zone, expected);
    }
}

#[test]
fn nodes_that_are_excluded_say_nothing_about_their_zone() {
    let mut nodes = [zone("a", 1, 0), zone("b", 0, 1)].concat();
    assert!(!Zones::of(&nodes).are_all_down());
    nodes[0].excluded = true;
    assert!(Zones::of(&nodes).are_all_down());
    nodes[1].excluded = true;
    assert!(!Zones::of(&nodes).are_all_down(), "there is none");
}

#[test]
fn a_pause_follows_each_node_of_a_zone() {
    let seconds = Duration::from_secs;
    let mut limits = EvictionLimits::default();
    assert_eq!(limits.wait("a", 0.1, seconds(1)), Some(Duration::ZERO));
    limits.tainted("a", seconds(1));
    assert_eq!(limits.wait("a", 0.1, seconds(4)), Some(seconds(7)));
    assert_eq!(limits.wait("a", 0.1, seconds(11)), Some(Duration::ZERO));
    assert_eq!(limits.wait("b", 0.1, seconds(4)), Some(Duration::ZERO));
    assert_eq!(limits.wait("a", 0.0, seconds(99)), None);
    assert!(limits.wait("a", f64::MIN_POSITIVE, seconds(9)).unwrap() > seconds(1 << 40));
}
