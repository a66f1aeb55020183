//! The changes that wake Pods, by the plugin that rejected them.

use std::sync::Arc;

use setpoint_scheduler::{ClusterEvent, Plugin};

use crate::world::{NodeB, PodB, helps, node, parse_selector, plan, pod, term, world};

fn pods(old: Option<&PodB>, new: Option<&PodB>) -> ClusterEvent {
    let view = |pod: &PodB| Arc::new(pod.view());
    ClusterEvent::Pod {
        old: old.map(view),
        new: new.map(view),
    }
}

fn nodes(old: Option<&NodeB>, new: Option<&NodeB>) -> ClusterEvent {
    let view = |node: &NodeB| Arc::new(node.view());
    ClusterEvent::Node {
        old: old.map(view),
        new: new.map(view),
    }
}

#[track_caller]
fn assert_hints(plugin: Plugin, waiting: &PodB, cases: &[(ClusterEvent, bool)]) {
    let rejectors = [plugin].into_iter().collect();
    for (n, (change, expected)) in cases.iter().enumerate() {
        let helped = helps(&waiting.view(), rejectors, change);
        assert_eq!(helped, *expected, "case {n}: {change:?}");
    }
    assert!(!helps(&waiting.view(), Default::default(), &cases[0].0));
}

/// Checks C6.
#[test]
fn pods_without_room_wake_when_room_is_made() {
    let waiting = pod("p").cpu("2");
    let small = node("a").has("cpu", "1");
    let large = node("a").has("cpu", "4");
    let larger = node("a").has("cpu", "8");
    let labeled = larger.clone().labels("zone=b");
    let placed = |cpu: &str| pod("other").on("a").cpu(cpu);
    let cases = [
        (pods(Some(&placed("1")), None), true),
        (pods(None, Some(&placed("1"))), false),
        (pods(Some(&placed("2")), Some(&placed("1"))), true),
        (pods(Some(&placed("1")), Some(&placed("2"))), false),
        (nodes(None, Some(&small)), false),
        (nodes(None, Some(&large)), true),
        (nodes(Some(&large), Some(&larger)), true),
        (nodes(Some(&larger), Some(&large)), false),
        (nodes(Some(&larger), Some(&labeled)), false),
        (nodes(Some(&large), None), false),
        (ClusterEvent::Namespace, false),
    ];
    assert_hints(Plugin::NodeResourcesFit, &waiting, &cases);
}

/// Checks C6: upstream's `Test_isSchedulableAfterNodeChange` of NodeResourcesFit.
#[test]
fn pods_wake_when_a_node_has_more_of_what_they_request() {
    const GPU: &str = "example.com/gpu";
    let base = || node("a").has("cpu", "4").has("memory", "4Gi").has(GPU, "4");
    let changed = |resource: &str, amount: &str| {
        let new = base().has(resource, amount);
        nodes(Some(&base()), Some(&new))
    };
    let cases = |wanted: &str| {
        [
            (changed("cpu", "8"), wanted == "cpu"),
            (changed("memory", "8Gi"), wanted == "memory"),
            (changed(GPU, "8"), wanted == GPU),
            (changed("pods", "200"), true),
            (changed("cpu", "3"), false),
            (changed("memory", "3Gi"), false),
            (changed(GPU, "3"), false),
            (changed("pods", "100"), false),
            (changed("pods", "110"), false),
            (nodes(None, Some(&base())), true),
            (nodes(None, Some(&base().has("pods", "0"))), false),
        ]
    };
    for (resource, amount) in [("cpu", "1"), ("memory", "1Gi"), (GPU, "1")] {
        let waiting = pod("p").requests(&[(resource, amount)]);
        assert_hints(Plugin::NodeResourcesFit, &waiting, &cases(resource));
    }
}

/// Checks C6: upstream's queueing hints of VolumeZone.
#[test]
fn pods_wake_when_a_node_appears_or_has_other_labels() {
    let (plain, zoned) = (node("a"), node("a").labels("zone=b"));
    let cases = [
        (nodes(None, Some(&plain)), true),
        (nodes(Some(&plain), Some(&zoned)), true),
        (nodes(Some(&zoned), Some(&zoned.clone().cordoned())), false),
        (nodes(Some(&zoned), None), false),
        (pods(Some(&pod("other").on("a")), None), false),
    ];
    assert_hints(Plugin::VolumeZone, &pod("p"), &cases);
}

/// Checks C6.
#[test]
fn pods_wake_when_a_node_ceases_to_reject_them() {
    let plain = node("a");
    let (labeled, cordoned) = (node("a").labels("disk=ssd"), node("a").cordoned());
    let tainted = node("a").taint("x", "", "NoSchedule");
    let rejected = [
        (Plugin::NodeUnschedulable, pod("p"), &cordoned, &plain),
        (Plugin::TaintToleration, pod("p"), &tainted, &plain),
        (
            Plugin::NodeAffinity,
            pod("p").selects("disk=ssd"),
            &plain,
            &labeled,
        ),
    ];
    for (plugin, waiting, bad, good) in rejected {
        let cases = [
            (nodes(None, Some(good)), true),
            (nodes(None, Some(bad)), false),
            (nodes(Some(bad), Some(good)), true),
            (nodes(Some(good), Some(bad)), false),
            (nodes(Some(good), Some(good)), false),
            (nodes(Some(bad), None), false),
            (pods(Some(&pod("other").on("a")), None), false),
        ];
        assert_hints(plugin, &waiting, &cases);
    }
}

/// Checks C6.
#[test]
fn pods_wake_when_their_port_is_free() {
    let waiting = pod("p").port("TCP/0.0.0.0/80");
    let other = |port: &str| pod("other").on("a").port(port);
    let cases = [
        (pods(Some(&other("TCP/127.0.0.1/80")), None), true),
        (pods(Some(&other("TCP/0.0.0.0/81")), None), false),
        (pods(None, Some(&other("TCP/0.0.0.0/80"))), false),
        (nodes(None, Some(&node("b"))), true),
        (
            nodes(Some(&node("b")), Some(&node("b").labels("x=y"))),
            false,
        ),
    ];
    assert_hints(Plugin::NodePorts, &waiting, &cases);
}

/// Checks C6: upstream's `Test_isSchedulableAfterPodChange` of InterPodAffinity.
#[test]
fn pods_wake_when_pods_that_they_want_or_avoid_come_and_go() {
    let on = |labels: &str| pod("other").on("a").labels(labels);
    let plain = pod("p").labels("app=web");
    let near = plain.clone().near("zone", "app=db");
    let cases = [
        (pods(None, Some(&on("app=db"))), true),
        (pods(None, Some(&on("app=x"))), false),
        (pods(Some(&on("app=x")), Some(&on("app=db"))), true),
        (pods(Some(&on("app=db")), Some(&on("app=db,x=y"))), false),
        (pods(Some(&on("app=db")), None), false),
        (pods(None, Some(&on("app=db").namespace("other"))), false),
        (nodes(None, Some(&node("b").labels("zone=b"))), true),
        (
            nodes(Some(&node("b")), Some(&node("b").labels("zone=b"))),
            true,
        ),
        (
            nodes(Some(&node("b")), Some(&node("b").labels("x=y"))),
            false,
        ),
        (ClusterEvent::Namespace, true),
    ];
    assert_hints(Plugin::InterPodAffinity, &near, &cases);
    let mut anywhere = term("zone", "app=db");
    anywhere.namespace_selector = parse_selector("team=a");
    let cases = [
        (pods(None, Some(&on("app=db").namespace("other"))), true),
        (pods(None, Some(&on("app=x").namespace("other"))), false),
    ];
    let near = plain.clone().near_term(anywhere);
    assert_hints(Plugin::InterPodAffinity, &near, &cases);
    let away = plain.clone().away("zone", "app=db");
    let repelling = on("app=x").away("zone", "app=web");
    let cases = [
        (pods(Some(&on("app=db")), None), true),
        (pods(Some(&on("app=db")), Some(&on("app=x"))), true),
        (pods(Some(&on("app=x")), None), false),
        (pods(None, Some(&on("app=db"))), false),
        (pods(Some(&repelling), None), true),
    ];
    assert_hints(Plugin::InterPodAffinity, &away, &cases);
    let cases = [
        (pods(Some(&repelling), None), true),
        (pods(Some(&on("app=x")), None), false),
    ];
    assert_hints(Plugin::InterPodAffinity, &plain, &cases);
}

/// Checks C6: upstream's `Test_isSchedulableAfterPodChange` of PodTopologySpread.
#[test]
fn pods_wake_when_the_spread_changes() {
    let waiting = pod("p").labels("foo").spread(1, "zone", "foo");
    let on = |labels: &str| pod("other").on("a").labels(labels);
    let (bare, zoned) = (node("b"), node("b").labels("zone=b"));
    let tainted = zoned.clone().taint("x", "", "NoSchedule");
    let cases = [
        (pods(None, Some(&on("foo"))), true),
        (pods(Some(&on("foo")), None), true),
        (pods(Some(&on("foo")), Some(&on("bar"))), true),
        (pods(Some(&on("foo")), Some(&on("foo").deleting())), true),
        (pods(Some(&on("foo")), Some(&on("foo,bar"))), false),
        (pods(None, Some(&on("bar"))), false),
        (pods(None, Some(&on("foo").namespace("other"))), false),
        (nodes(None, Some(&zoned)), true),
        (nodes(None, Some(&bare)), false),
        (nodes(Some(&zoned), None), true),
        (nodes(Some(&bare), Some(&zoned)), true),
        (nodes(Some(&zoned), Some(&tainted)), true),
        (nodes(Some(&zoned), Some(&zoned)), false),
    ];
    assert_hints(Plugin::PodTopologySpread, &waiting, &cases);
}

/// Checks C6: without nodes, each new one counts.
#[test]
fn pods_that_wait_for_the_first_node_are_rejected_by_all_plugins() {
    let snapshot = world(&[], &[], &[pod("p")]);
    let steps = plan(&snapshot).steps;
    let setpoint_scheduler::Action::MarkUnschedulable { rejectors, .. } = &steps[0].action else {
        panic!("there is no node");
    };
    let waiting = pod("p").view();
    assert!(helps(&waiting, *rejectors, &nodes(None, Some(&node("a")))));
}
