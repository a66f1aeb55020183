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
    match pods.is_empty() {
        true => "no Pods".to_owned(),
        false => pods.join(", "),
    }
}

#[test]
fn pods_start_in_order_and_are_updated_in_reverse() {
    let mut cluster = Cluster::new(3);
    cluster.image("a");
    expect![[r#"
        revision 1 because no revision has this template
          no Pods
        create web-0 because no Pod has this ordinal
          web-0 of a
        create web-1 because no Pod has this ordinal
          web-0 of a, web-1 of a
        create web-2 because no Pod has this ordinal
          web-0 of a, web-1 of a, web-2 of a
    "#]]
    .assert_eq(&settled(&mut cluster));
    cluster.image("b");
    expect![[r#"
        revision 2 because no revision has this template
          web-0 of a, web-1 of a, web-2 of a
        delete web-2 because its template is that of an old revision
          web-0 of a, web-1 of a
        create web-2 because no Pod has this ordinal
          web-0 of a, web-1 of a, web-2 of b
        delete web-1 because its template is that of an old revision
          web-0 of a, web-2 of b
        create web-1 because no Pod has this ordinal
          web-0 of a, web-1 of b, web-2 of b
        delete web-0 because its template is that of an old revision
          web-1 of b, web-2 of b
        create web-0 because no Pod has this ordinal
          web-0 of b, web-1 of b, web-2 of b
    "#]]
    .assert_eq(&settled(&mut cluster));
}

#[test]
fn claims_come_before_their_pods() {
    let mut cluster = Cluster::new(2).with_claims();
    cluster.image("a");
    expect![[r#"
        revision 1 because no revision has this template
          no Pods
        claim data-web-0 because its Pod needs this claim
          no Pods
        create web-0 because no Pod has this ordinal
          web-0 of a
        claim data-web-1 because its Pod needs this claim
          web-0 of a
        create web-1 because no Pod has this ordinal
          web-0 of a, web-1 of a
    "#]]
    .assert_eq(&settled(&mut cluster));
}

#[test]
fn a_partition_keeps_the_template_of_the_pods_below_it() {
    let mut cluster = Cluster::new(3).parallel();
    cluster.image("a");
    expect![[r#"
        revision 1 because no revision has this template
          no Pods
        create web-0 because no Pod has this ordinal
        create web-1 because no Pod has this ordinal
        create web-2 because no Pod has this ordinal
          web-0 of a, web-1 of a, web-2 of a
    "#]]
    .assert_eq(&settled(&mut cluster));
    cluster.partition(2);
    cluster.image("b");
    expect![[r#"
        revision 2 because no revision has this template
          web-0 of a, web-1 of a, web-2 of a
        delete web-2 because its template is that of an old revision
          web-0 of a, web-1 of a
        create web-2 because no Pod has this ordinal
          web-0 of a, web-1 of a, web-2 of b
    "#]]
    .assert_eq(&settled(&mut cluster));
}

#[test]
fn a_claim_that_goes_with_its_pod_is_owned_by_the_pod_before_that_is_deleted() {
    let mut cluster = Cluster::new(3).with_claims();
    cluster.retain("Retain", "Delete");
    cluster.image("a");
    cluster.settle();
    cluster.set.spec.replicas = Some(1);
    expect![[r#"
        own data-web-2 because the retention policy of claims
        own data-web-1 because the retention policy of claims
          web-0 of a, web-1 of a, web-2 of a
        delete web-2 because more Pods than replicas
          web-0 of a, web-1 of a
        delete web-1 because more Pods than replicas
          web-0 of a
    "#]]
    .assert_eq(&settled(&mut cluster));
}
