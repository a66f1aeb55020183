//! Plans as text, for readers: each with its reasons, until nothing is left to do.

use std::fmt::Write as _;

use expect_test::expect;
use setpoint_statefulset_controller::plan;

use crate::decisions::cluster::{Cluster, brief};

/// Runs nodes and controller in turn. Returns each plan, and the Pods after it.
fn settled(cluster: &mut Cluster) -> String {
    let mut text = String::new();
    for _ in 0..20 {
        let steps = plan(&cluster.world()).steps;
        for step in &steps {
            writeln!(text, "{} because {}", brief(&step.action), step.because).unwrap();
        }
        let before = cluster.set.status.clone();
        let is_empty = cluster.reconcile();
        if !is_empty {
            writeln!(text, "  {}", pods(cluster)).unwrap();
        }
        cluster.run();
        let waiting: Vec<_> = cluster.names().into_iter().map(str::to_owned).collect();
        waiting.iter().for_each(|name| cluster.ready(name));
        if is_empty && before == cluster.set.status {
            return text;
        }
    }
    panic!("no end:\n{text}");
}

fn pods(cluster: &Cluster) -> String {
    let names = cluster.names().into_iter();
    let pods: Vec<_> = names
        .map(|name| format!("{name} of {}", cluster.image_of(name)))
        .collect();
    pods.join(", ")
}

#[test]
fn pods_start_in_order_and_are_updated_in_reverse() {
    let mut cluster = Cluster::new(3);
    cluster.image("a");
    expect![[""]].assert_eq(&settled(&mut cluster));
    cluster.image("b");
    expect![[""]].assert_eq(&settled(&mut cluster));
}

#[test]
fn claims_come_before_their_pods() {
    let mut cluster = Cluster::new(2).with_claims();
    cluster.image("a");
    expect![[""]].assert_eq(&settled(&mut cluster));
}
