//! A rollout as text, for readers: each plan with its reasons, and the Pods after it.

use std::fmt::Write as _;

use expect_test::expect;
use setpoint_deployment_controller::Action;

use crate::decisions::cluster::Cluster;

/// Reconciles until nothing is left to do. Returns each plan, and the number of Pods after it.
fn rolled_out(cluster: &mut Cluster) -> String {
    let mut text = String::new();
    for _ in 0..20 {
        let plan = cluster.plan();
        for step in &plan.steps {
            let action = match &step.action {
                Action::Create { replicas, .. } => format!("create a set of {replicas}"),
                Action::Scale { from, to, .. } => format!("scale from {from} to {to}"),
                other => format!("{other:?}")
                    .split([' ', '('])
                    .next()
                    .unwrap()
                    .to_owned(),
            };
            writeln!(text, "{action} because {}", step.because).unwrap();
        }
        let is_done = cluster.reconcile(usize::MAX);
        let before = cluster.pods();
        for index in 0..2 {
            cluster.scale_pods(index);
            cluster.finish_terminating(index);
            cluster.make_available(index);
            cluster.report_status(index);
        }
        let (pods, available) = cluster.pods();
        writeln!(text, "  {pods} Pods, {available} available").unwrap();
        if is_done && before == (pods, available) {
            return text;
        }
    }
    panic!("no end:\n{text}");
}

#[test]
fn a_rollout_without_surge_replaces_one_pod_at_a_time() {
    let mut cluster = Cluster::settled(3, 0, 1);
    cluster.set_image("next");
    expect![[r#"
        create a set of 0 because no ReplicaSet has this template
          3 Pods, 3 available
        scale from 3 to 2 because enough Pods are available without it
          2 Pods, 2 available
        scale from 0 to 1 because there is room for more
          3 Pods, 3 available
        scale from 2 to 1 because enough Pods are available without it
          2 Pods, 2 available
        scale from 1 to 2 because there is room for more
          3 Pods, 3 available
        scale from 1 to 0 because enough Pods are available without it
          2 Pods, 2 available
        scale from 2 to 3 because there is room for more
          3 Pods, 3 available
          3 Pods, 3 available
    "#]]
    .assert_eq(&rolled_out(&mut cluster));
}

#[test]
fn a_rollout_with_surge_adds_a_pod_before_it_takes_one() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.set_image("next");
    expect![[r#"
        create a set of 1 because no ReplicaSet has this template
          4 Pods, 4 available
        scale from 3 to 2 because enough Pods are available without it
          3 Pods, 3 available
        scale from 1 to 2 because there is room for more
          4 Pods, 4 available
        scale from 2 to 1 because enough Pods are available without it
          3 Pods, 3 available
        scale from 2 to 3 because there is room for more
          4 Pods, 4 available
        scale from 1 to 0 because enough Pods are available without it
          3 Pods, 3 available
          3 Pods, 3 available
    "#]]
    .assert_eq(&rolled_out(&mut cluster));
}

#[test]
fn recreate_removes_all_pods_before_it_makes_new_ones() {
    let mut cluster = Cluster::settled(3, 1, 0);
    cluster.edit(|spec| {
        spec.strategy.r#type = "Recreate".into();
        spec.strategy.rolling_update = None;
    });
    cluster.set_image("next");
    expect![[r#"
        scale from 3 to 0 because Pods of an old template
          0 Pods, 0 available
        create a set of 3 because no ReplicaSet has this template
          3 Pods, 1 available
          3 Pods, 2 available
          3 Pods, 3 available
          3 Pods, 3 available
    "#]]
    .assert_eq(&rolled_out(&mut cluster));
}

#[test]
fn a_rollback_scales_the_old_set_up_again() {
    let mut cluster = Cluster::settled(2, 1, 0);
    let before = cluster.deployment.spec.template.clone();
    cluster.set_image("next");
    cluster.settle();
    cluster.edit(|spec| spec.template = before);
    expect![[r#"
        Refresh because annotations or minReadySeconds of the Deployment changed
          2 Pods, 2 available
        scale from 0 to 1 because there is room for more
          3 Pods, 3 available
        scale from 2 to 1 because enough Pods are available without it
          2 Pods, 2 available
        scale from 1 to 2 because there is room for more
          3 Pods, 3 available
        scale from 1 to 0 because enough Pods are available without it
          2 Pods, 2 available
          2 Pods, 2 available
    "#]]
    .assert_eq(&rolled_out(&mut cluster));
}
