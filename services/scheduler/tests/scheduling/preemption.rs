//! Preemption. Many cases are those of upstream's `default_preemption_test.go`.

use std::sync::Arc;

use expect_test::expect;
use setpoint_controller::View as _;
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_scheduler::{BudgetView, Nomination, Snapshot};

use crate::world::{NodeB, PodB, node, parse_labels, planned, pod, refusal, victims, world};

pub fn small(name: &str) -> NodeB {
    node(name).has("cpu", "1").labels(&format!("host={name}"))
}

pub fn on(node: &str, name: &str, cpu: &str, priority: i32) -> PodB {
    pod(name).cpu(cpu).priority(priority).on(node)
}

pub fn high(cpu: &str) -> PodB {
    pod("high").cpu(cpu).priority(1000)
}

pub fn budget(labels: &str, allowed: i32) -> Arc<BudgetView> {
    let mut budget = PodDisruptionBudget::default();
    budget.metadata.namespace = "default".into();
    budget.metadata.name = labels.into();
    budget.spec.selector = Some(LabelSelector {
        match_labels: parse_labels(labels),
        ..Default::default()
    });
    budget.status.disruptions_allowed = allowed;
    Arc::new(BudgetView::of(budget))
}

fn nominated(snapshot: &Snapshot) -> String {
    match refusal(snapshot).1 {
        Nomination::Node(node) => node,
        other => panic!("no node is nominated: {other:?}"),
    }
}

/// Checks C7 and F5.
#[test]
fn a_pod_takes_the_place_of_one_of_lower_priority() {
    let snapshot = world(&[small("a")], &[on("a", "low", "800m", 1)], &[high("500m")]);
    expect![[r#"
        refuse high, nomination Node("a") because no node fits; Pods of lower priority make room
          0/1 nodes are available: 1 Insufficient cpu.
          a: Insufficient cpu
        preempt low on a for high because a Pod of higher priority needs its room
    "#]]
    .assert_eq(&planned(&snapshot));
}

/// Checks C7: upstream's `TestDryRunPreemption`.
#[test]
fn victims_are_as_few_and_as_unimportant_as_possible() {
    let anti = |name: &str, priority| on("a", name, "100m", priority).labels("pod=preemptor");
    let cases: Vec<(Vec<PodB>, PodB, &[&str])> = vec![
        // One of two equal Pods: the one that started later.
        (
            vec![
                on("a", "old", "500m", 1).started(1),
                on("a", "young", "500m", 1).started(2),
            ],
            high("500m"),
            &["young"],
        ),
        (
            vec![
                on("a", "started", "500m", 1).started(1),
                on("a", "waiting", "500m", 1),
            ],
            high("500m"),
            &["waiting"],
        ),
        // The one of lower priority, although the other would do.
        (
            vec![
                on("a", "low", "500m", 1).started(1),
                on("a", "mid", "500m", 2).started(2),
            ],
            high("500m"),
            &["low"],
        ),
        // Pods that need not go stay.
        (
            vec![
                on("a", "large", "500m", 2),
                on("a", "small", "100m", 1),
                on("a", "smaller", "50m", 0),
            ],
            high("870m"),
            &["large", "smaller"],
        ),
        (
            vec![
                on("a", "small-1", "200m", 1),
                on("a", "small-2", "200m", 1),
                on("a", "equal", "500m", 1000),
            ],
            high("500m"),
            &["small-1", "small-2"],
        ),
        // Anti-affinity to Pods of lower priority.
        (
            vec![anti("repelled", 1), on("a", "other", "100m", 1)],
            high("100m").away("host", "pod=preemptor"),
            &["repelled"],
        ),
        // Anti-affinity of Pods of lower priority.
        (
            vec![
                on("a", "repelling", "100m", 1).away("host", "app=high"),
                on("a", "other", "100m", 1),
            ],
            high("100m").labels("app=high"),
            &["repelling"],
        ),
        // Host ports.
        (
            vec![
                on("a", "serving", "1m", 1).port("TCP/0.0.0.0/80"),
                on("a", "other", "1m", 1).port("TCP/0.0.0.0/81"),
            ],
            high("1m").port("TCP/0.0.0.0/80"),
            &["serving"],
        ),
        // Nobody can help.
        (vec![on("a", "equal", "800m", 1000)], high("500m"), &[]),
        (vec![on("a", "low", "800m", 1)], high("2"), &[]),
        (
            vec![on("a", "low", "200m", 1), on("a", "equal", "600m", 1000)],
            high("500m"),
            &[],
        ),
        // Affinity to a victim.
        (
            vec![on("a", "loved", "800m", 1).labels("foo")],
            high("500m").near("host", "foo"),
            &[],
        ),
        // Affinity to a Pod that stays, beside a victim that it is not about.
        (
            vec![
                on("a", "loved", "100m", 2000).labels("foo"),
                on("a", "low", "800m", 1),
            ],
            high("500m").near("host", "foo"),
            &["low"],
        ),
    ];
    for (n, (placed, incoming, expected)) in cases.into_iter().enumerate() {
        let snapshot = world(&[small("a")], &placed, &[incoming]);
        assert_eq!(victims(&snapshot), expected, "case {n}");
        let nominates = matches!(refusal(&snapshot).1, Nomination::Node(_));
        assert_eq!(nominates, !expected.is_empty(), "case {n}");
    }
}

/// Checks C7: the spread of Pods counts without the victims.
#[test]
fn victims_may_even_out_the_spread() {
    let nodes = [small("a").labels("zone=a"), small("b").labels("zone=b")];
    let placed = [
        on("a", "a1", "100m", 1).labels("foo"),
        on("a", "a2", "100m", 2).labels("foo"),
        on("b", "full", "1", 2000),
    ];
    let incoming = high("100m").labels("foo").spread(1, "zone", "foo");
    let snapshot = world(&nodes, &placed, &[incoming]);
    let (message, nomination) = refusal(&snapshot);
    assert_eq!(nomination, Nomination::Node("a".into()), "{message}");
    assert_eq!(victims(&snapshot), ["a2", "a1"]);
    // A Pod that the spread allows is spared, and counts again in its domain.
    let placed = [
        on("a", "spared", "100m", 2).labels("foo"),
        on("a", "other", "800m", 1),
        on("b", "full", "1", 2000).labels("foo"),
    ];
    let incoming = high("500m").labels("foo").spread(1, "zone", "foo");
    assert_eq!(victims(&world(&nodes, &placed, &[incoming])), ["other"]);
}

/// Checks C7: upstream's `TestSelectBestCandidate`.
#[test]
fn the_node_with_the_least_harm_is_chosen() {
    let three = [small("a"), small("b"), small("c")];
    let full = |node: &str, priority, started| {
        let name = format!("on-{node}");
        on(node, &name, "900m", priority).started(started)
    };
    let half = |node: &str, name: &str, priority, started| {
        on(node, name, "450m", priority).started(started)
    };
    let cases: Vec<(Vec<PodB>, &str)> = vec![
        // The lowest of the highest priorities.
        (vec![full("a", 3, 1), full("b", 1, 1), full("c", 2, 1)], "b"),
        // The lowest sum: fewer victims.
        (
            vec![
                half("a", "a1", 1, 1),
                half("a", "a2", 1, 1),
                full("b", 1, 1),
                full("c", 2, 1),
            ],
            "b",
        ),
        // Many of negative priority are not better than one.
        (
            vec![
                half("a", "a1", -10, 1),
                half("a", "a2", -10, 1),
                full("b", -10, 1),
                full("c", 1, 1),
            ],
            "b",
        ),
        // Those that started last.
        (vec![full("a", 1, 2), full("b", 1, 3), full("c", 1, 1)], "b"),
        // Only Pods of the highest priority among the victims count for that.
        (
            vec![
                half("a", "a1", 1, 5),
                half("a", "a2", 2, 2),
                half("b", "b1", 1, 1),
                half("b", "b2", 2, 4),
                full("c", 3, 9),
            ],
            "b",
        ),
    ];
    for (n, (placed, expected)) in cases.into_iter().enumerate() {
        let snapshot = world(&three, &placed, &[high("900m")]);
        assert_eq!(nominated(&snapshot), expected, "case {n}");
    }
}

/// Checks C7: PodDisruptionBudgets are respected where that is possible, as in upstream's cases.
#[test]
fn disruption_budgets_are_respected_where_that_is_possible() {
    let covered = |node: &str, name: &str, cpu: &str, priority| {
        on(node, name, cpu, priority).labels("app=foo")
    };
    let with = |nodes: &[NodeB], placed: &[PodB], cpu: &str, allowed| {
        let mut snapshot = world(nodes, placed, &[high(cpu)]);
        snapshot.budgets = vec![budget("app=foo", allowed)];
        snapshot
    };
    // Another node, although its victim is more important.
    let nodes = [small("a"), small("b")];
    let placed = [covered("a", "low", "900m", 1), on("b", "mid", "900m", 2)];
    assert_eq!(victims(&with(&nodes, &placed, "500m", 0)), ["mid"]);
    assert_eq!(victims(&with(&nodes, &placed, "500m", 1)), ["low"]);
    // Another Pod of the node.
    let placed = [covered("a", "low", "500m", 1), on("a", "mid", "500m", 2)];
    assert_eq!(victims(&with(&nodes[..1], &placed, "500m", 0)), ["mid"]);
    assert_eq!(victims(&with(&nodes[..1], &placed, "500m", 1)), ["low"]);
    // There is no other way.
    assert_eq!(victims(&with(&nodes[..1], &placed, "1", 0)), ["mid", "low"]);
    // Each victim counts.
    let placed = [
        covered("a", "a1", "450m", 1),
        covered("a", "a2", "450m", 1),
        on("b", "b1", "450m", 5),
        on("b", "b2", "450m", 5),
    ];
    assert_eq!(victims(&with(&nodes, &placed, "900m", 1)), ["b1", "b2"]);
    assert_eq!(victims(&with(&nodes, &placed, "900m", 2)), ["a1", "a2"]);
}

/// Checks C7: a budget that one Pod's victims use up is used up for the next Pod of the plan.
#[test]
fn a_budget_counts_over_all_pods_of_a_plan() {
    let covered =
        |node: &str, name: &str, priority| on(node, name, "900m", priority).labels("app=foo");
    let nodes = [small("a"), small("b"), small("c")];
    let placed = [
        covered("a", "low-a", 1),
        covered("b", "low-b", 1),
        on("c", "mid", "900m", 2),
    ];
    let second = pod("second").cpu("900m").priority(1000);
    let mut snapshot = world(&nodes, &placed, &[high("900m"), second]);
    snapshot.budgets = vec![budget("app=foo", 1)];
    let victims = victims(&snapshot);
    assert_eq!(victims.len(), 2);
    assert!(victims.contains(&"mid".to_owned()), "{victims:?}");
}

/// Checks C7: what eviction cannot cure does not lead to it, and the message says so, as upstream's.
#[test]
fn the_message_says_why_preemption_is_of_no_use() {
    let low = || on("a", "low", "100m", 1);
    let helpless = |nodes: &str| format!("preemption: 0/1 nodes are available: 1 {nodes}.");
    let unhelpful = helpless("Preemption is not helpful for scheduling");
    let cases: Vec<(NodeB, PodB, String)> = vec![
        (
            small("a").cordoned(),
            high("1m"),
            format!("1 node(s) were unschedulable. {unhelpful}"),
        ),
        (
            small("a").taint("x", "", "NoSchedule"),
            high("1m"),
            format!("1 node(s) had untolerated taint(s). {unhelpful}"),
        ),
        (
            small("a"),
            high("1m").selects("disk=ssd"),
            format!("1 node(s) didn't match Pod's node affinity/selector. {unhelpful}"),
        ),
        (
            small("a"),
            high("2"),
            format!("1 Insufficient cpu. {unhelpful}"),
        ),
        (
            small("a"),
            high("1m").near("host", "none"),
            format!("1 node(s) didn't match pod affinity rules. {unhelpful}"),
        ),
        (
            small("a"),
            high("1m").spread(1, "rack", "foo"),
            format!(
                "1 node(s) didn't match pod topology spread constraints (missing required label). {unhelpful}"
            ),
        ),
        (
            small("a"),
            pod("p").cpu("1").priority(1),
            format!(
                "1 Insufficient cpu. {}",
                helpless("No preemption victims found for incoming pod")
            ),
        ),
        (
            small("a"),
            high("1").with(|spec| spec.preemption_policy = Some("Never".into())),
            "1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.".into(),
        ),
    ];
    for (node, incoming, expected) in cases {
        let snapshot = world(&[node], &[low()], &[incoming]);
        let (message, _) = refusal(&snapshot);
        assert_eq!(message, format!("0/1 nodes are available: {expected}"));
        assert_eq!(victims(&snapshot), [""; 0]);
    }
}

/// Checks C7: a mix of nodes is counted as upstream's message counts it.
#[test]
fn the_message_counts_nodes_for_each_filter_and_for_preemption() {
    let nodes = [
        small("a"),
        small("b"),
        small("c").cordoned(),
        small("d").taint("x", "", "NoSchedule"),
    ];
    let placed = [
        on("a", "equal", "800m", 1000),
        on("b", "higher", "800m", 2000),
    ];
    let snapshot = world(&nodes, &placed, &[high("500m")]);
    assert_eq!(
        refusal(&snapshot).0,
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 Insufficient cpu. \
         preemption: 0/4 nodes are available: 2 No preemption victims found for incoming pod, \
         2 Preemption is not helpful for scheduling."
    );
}

/// Checks C7: upstream's `TestPodEligibleToPreemptOthers`.
#[test]
fn a_pod_waits_for_its_victims_before_it_preempts_others() {
    let waiting = || high("500m").nominated("a");
    let wait = "not eligible due to a terminating pod on the nominated node.";
    let cases: Vec<(NodeB, PodB, bool)> = vec![
        (small("a"), on("a", "victim", "900m", 1).preempted(), true),
        // Deleted for another reason.
        (small("a"), on("a", "victim", "900m", 1).deleting(), false),
        (small("a"), on("a", "victim", "900m", 1), false),
        // Preempted for a Pod of a higher priority than this one's.
        (
            small("a"),
            on("a", "victim", "900m", 1000).preempted(),
            false,
        ),
        // The nominated node does not fit any more.
        (
            small("a").taint("x", "", "NoSchedule"),
            on("a", "victim", "900m", 1).preempted(),
            false,
        ),
    ];
    for (n, (node, victim, waits)) in cases.into_iter().enumerate() {
        let other = on("b", "other", "900m", 1);
        let snapshot = world(&[node, small("b")], &[victim, other], &[waiting()]);
        let (message, nomination) = refusal(&snapshot);
        assert_eq!(message.ends_with(wait), waits, "case {n}: {message}");
        assert_eq!(nomination == Nomination::Keep, waits, "case {n}");
    }
}

/// Checks C7: a victim that is being deleted already is not deleted again, but makes room.
#[test]
fn a_pod_that_is_being_deleted_is_no_victim_again() {
    let leaving = on("a", "leaving", "900m", 1).deleting();
    let snapshot = world(&[small("a")], &[leaving], &[high("500m")]);
    assert_eq!(nominated(&snapshot), "a");
    assert_eq!(victims(&snapshot), [""; 0]);
}

/// Checks C7: two Pods of one plan do not count on the same room, and no victim is deleted twice.
#[test]
fn each_pod_of_a_plan_gets_victims_of_its_own() {
    let nodes = [small("a"), small("b")];
    let placed = [on("a", "low-a", "900m", 1), on("b", "low-b", "900m", 1)];
    let pods = ["one", "two", "three"].map(|name| pod(name).cpu("900m").priority(1000));
    let snapshot = world(&nodes, &placed, &pods);
    let mut found = victims(&snapshot);
    found.sort();
    assert_eq!(found, ["low-a", "low-b"]);
    let (message, nomination) = refusal(&snapshot);
    assert_eq!(nomination, Nomination::Clear, "{message}");
}

/// Checks C1 and C7: a Pod whose binding is in doubt is no victim.
#[test]
fn a_pod_without_a_node_of_its_own_is_no_victim() {
    let mut snapshot = world(&[small("a")], &[], &[high("500m")]);
    let assumed = Arc::new(pod("assumed").cpu("900m").priority(1).view());
    snapshot.nodes[0].take(&assumed);
    snapshot.pods[0].push(assumed);
    assert_eq!(victims(&snapshot), [""; 0]);
}
