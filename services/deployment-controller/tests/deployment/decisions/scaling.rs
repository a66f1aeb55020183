//! Cases of proportional scaling, those of upstream's tests first.

use crate::decisions::cluster::{Cluster, REVISION, SimulatedSet};
use setpoint_deployment_controller::Action;

/// A resized Deployment and its sets.
struct Case {
    name: &'static str,
    /// Size and surge before and after.
    before: (i32, i32),
    after: (i32, i32),
    /// The sizes of the old sets, oldest first.
    old: &'static [i32],
    new: Option<i32>,
    /// The sizes of the sets after the change, the new one last.
    expected: &'static [i32],
}

const CASES: [Case; 18] = [
    case("10 to 12", (10, 12), &[], Some(10), &[12]),
    case("10 to 5", (10, 5), &[], Some(10), &[5]),
    case("5 to 10", (5, 10), &[3], Some(2), &[6, 4]),
    case("5 to 3", (5, 3), &[3], Some(2), &[2, 1]),
    case("9 to 4", (9, 4), &[1], Some(8), &[0, 4]),
    case("7 to 10", (7, 10), &[2, 3], Some(2), &[3, 4, 3]),
    case("13 to 8", (13, 8), &[3, 8], Some(2), &[2, 5, 1]),
    case("a remainder, 3 to 4", (3, 4), &[1, 1], Some(1), &[1, 1, 2]),
    case("a remainder, 3 to 2", (3, 2), &[1, 1], Some(1), &[0, 1, 1]),
    case("no new set, 4 to 5", (4, 5), &[2, 2], None, &[2, 3]),
    case("6 to 0", (6, 0), &[1, 2], Some(3), &[0, 0, 0]),
    case("0 to 6", (6, 6), &[0, 0], Some(0), &[0, 0, 6]),
    case("size and template", (10, 14), &[3, 7], None, &[4, 10]),
    Case {
        before: (10, 2),
        after: (20, 2),
        ..case("with a surge", (10, 20), &[6], Some(6), &[11, 11])
    },
    Case {
        before: (10, 3),
        after: (50, 6),
        ..case("surge and size", (10, 50), &[8], Some(5), &[34, 22])
    },
    Case {
        before: (2, 1),
        after: (2, 1),
        ..case("a broken new set", (2, 2), &[1], Some(2), &[1, 2])
    },
    Case {
        before: (3, 1),
        after: (2, 1),
        ..case("a broken new set, 3 to 2", (3, 2), &[1], Some(2), &[1, 2])
    },
    Case {
        before: (6, 2),
        after: (0, 2),
        ..case("6 to 0 with a surge", (6, 0), &[1, 2], Some(3), &[0; 3])
    },
];

const fn case(
    name: &'static str,
    (before, after): (i32, i32),
    old: &'static [i32],
    new: Option<i32>,
    expected: &'static [i32],
) -> Case {
    Case {
        name,
        before: (before, 0),
        after: (after, 0),
        old,
        new,
        expected,
    }
}

impl Case {
    /// Returns a cluster whose sets are named by number, oldest first, and were last scaled for the size before.
    fn cluster(&self) -> Cluster {
        let (size, surge) = self.after;
        let mut cluster = Cluster::new(size, surge, 1);
        for (n, replicas) in self.old.iter().copied().chain(self.new).enumerate() {
            let is_new = n == self.old.len();
            let mut set = cluster.blank(&n.to_string());
            set.metadata.labels.insert("app".into(), "web".into());
            set.spec.replicas = Some(replicas);
            set.spec.template = cluster.deployment.spec.template.clone();
            if !is_new {
                set.spec.template.spec.hostname = format!("old-{n}");
            }
            set.status.replicas = replicas;
            set.status.observed_generation = 1;
            let (size, surge) = self.before;
            annotate(&mut set.metadata.annotations, n + 1, size, surge);
            cluster.sets.insert(n.to_string(), SimulatedSet::of(set));
        }
        cluster
    }
}

fn annotate(
    annotations: &mut std::collections::BTreeMap<String, String>,
    revision: usize,
    size: i32,
    surge: i32,
) {
    annotations.insert(REVISION.into(), revision.to_string());
    for (name, number) in [("desired", size), ("max", size + surge)] {
        let name = format!("deployment.kubernetes.io/{name}-replicas");
        annotations.insert(name, number.to_string());
    }
}

fn sizes(cluster: &Cluster) -> Vec<i32> {
    let sets = cluster.sets.values();
    sets.map(|simulated| simulated.set.spec.replicas.unwrap())
        .collect()
}

/// Checks D2: upstream's `TestScale`.
#[test]
fn a_change_of_size_is_distributed_as_upstream_does() {
    for case in CASES {
        let mut cluster = case.cluster();
        for step in cluster.plan().steps {
            assert!(
                matches!(step.action, Action::Scale { .. }),
                "{}: {step:?}",
                case.name
            );
            cluster.apply(&step.action).unwrap();
        }
        assert_eq!(sizes(&cluster), case.expected, "{}", case.name);
    }
}

/// Checks D2: the set with the annotation of an earlier size is scaled, the others stay.
#[test]
fn a_change_of_size_that_reached_only_some_sets_is_completed() {
    let mut cluster = case("3 to 5", (5, 5), &[1, 1], Some(2), &[]).cluster();
    let lagging = cluster.sets.get_mut("1").unwrap();
    annotate(&mut lagging.set.metadata.annotations, 2, 3, 0);
    for step in cluster.plan().steps {
        cluster.apply(&step.action).unwrap();
    }
    assert_eq!(sizes(&cluster), [1, 2, 2]);
}

/// Checks D2: a set without Pods has no share.
#[test]
fn a_change_of_size_writes_only_sets_with_pods() {
    let cluster = case("10 to 12", (10, 12), &[0], Some(10), &[]).cluster();
    let steps = cluster.plan().steps;
    let scaled: Vec<_> = steps.iter().map(|step| step.action.set()).collect();
    assert_eq!(scaled, ["1"]);
}

/// Checks D2: a set without Pods is not written.
#[test]
fn a_resized_deployment_with_all_new_pods_available_scales_old_sets_to_zero() {
    let mut cluster = case("3 to 2", (3, 2), &[0, 1], Some(2), &[]).cluster();
    let new = &mut cluster.sets.get_mut("2").unwrap().set;
    new.status.available_replicas = 2;
    annotate(&mut new.metadata.annotations, 3, 2, 0);
    let steps = cluster.plan().steps;
    let scaled: Vec<_> = steps.iter().map(|step| step.action.set()).collect();
    assert_eq!(scaled, ["1"]);
    cluster.apply(&steps[0].action).unwrap();
    assert_eq!(sizes(&cluster), [0, 0, 2]);
}

/// Checks D2: without an annotation the Deployment's status is the previous size; without both the largest set takes
/// the whole change.
#[test]
fn a_missing_size_annotation_is_replaced_by_the_status() {
    let cases = [(5, None, [6, 4]), (5, Some("0"), [6, 4]), (0, None, [8, 2])];
    for (replicas, max, expected) in cases {
        let mut cluster = case("5 to 10", (5, 10), &[3], Some(2), &[]).cluster();
        cluster.deployment.status.replicas = replicas;
        for simulated in cluster.sets.values_mut() {
            let annotations = &mut simulated.set.metadata.annotations;
            let name = "deployment.kubernetes.io/max-replicas";
            annotations.remove(name);
            annotations.extend(max.map(|max| (name.to_owned(), max.to_owned())));
        }
        for step in cluster.plan().steps {
            cluster.apply(&step.action).unwrap();
        }
        assert_eq!(sizes(&cluster), expected, "{replicas}");
    }
}
