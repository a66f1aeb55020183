//! Indexed Jobs: indexes, their limits of failures, the success policy.

use setpoint_job_controller::Action;
use setpoint_proto::batch::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule, SuccessPolicy,
    SuccessPolicyRule,
};

use crate::decisions::cluster::{Cluster, FAILURES};

/// Returns the indexes of the Pods that are created, with the failures before them.
fn created(cluster: &Cluster) -> Vec<(usize, Option<(i32, i32)>)> {
    let steps = cluster.plan().steps;
    let creates = steps.into_iter().filter_map(|step| match step.action {
        Action::Create {
            index,
            failures,
            name,
        } => {
            assert!(name.starts_with(&format!("pi-{}-", index.unwrap())));
            Some((index.unwrap(), failures.map(|it| (it.counted, it.ignored))))
        }
        _ => None,
    });
    creates.collect()
}

fn pod_of(cluster: &Cluster, index: usize) -> String {
    let prefix = format!("pi-{index}-");
    let active = cluster
        .names("Pending")
        .into_iter()
        .chain(cluster.names("Running"));
    active
        .into_iter()
        .find(|name| name.starts_with(&prefix))
        .unwrap()
}

fn end(cluster: &mut Cluster, index: usize, code: i32) {
    let name = pod_of(cluster, index);
    cluster.run(&name);
    cluster.end(&name, code);
}

#[test]
fn the_first_missing_indexes_get_pods() {
    let mut cluster = Cluster::indexed(6, |job| {
        job.spec.parallelism = Some(3);
        job.status.completed_indexes = "0,2-3".into();
    });
    cluster.add("pi-1-x", Some(1));
    assert_eq!(created(&cluster), [(4, None), (5, None)]);
}

#[test]
fn completed_indexes_are_intervals() {
    let mut cluster = Cluster::indexed(6, |_| {});
    cluster.reconcile();
    for index in [4, 0, 1, 2] {
        end(&mut cluster, index, 0);
        (0..3).for_each(|_| _ = cluster.reconcile());
    }
    assert_eq!(cluster.job.status.completed_indexes, "0-2,4");
    assert_eq!(cluster.job.status.succeeded, 4);
}

#[test]
fn pods_without_an_index_of_their_own_are_deleted() {
    let mut cluster = Cluster::indexed(2, |_| {});
    cluster.add("pi-0-old", Some(0));
    cluster.run("pi-0-old");
    cluster.add("pi-0-new", Some(0));
    cluster.add("pi-2", Some(2));
    cluster.add("pi-none", None);
    cluster.reconcile();
    assert_eq!(cluster.pods.keys().collect::<Vec<_>>(), ["pi-0-old"]);
    assert_eq!(created(&cluster), [(1, None)]);
}

/// Checks J4.
#[test]
fn each_index_has_its_own_limit_and_backoff() {
    let mut cluster = Cluster::indexed(2, |job| {
        job.spec.backoff_limit_per_index = Some(1);
        job.spec.backoff_limit = Some(i32::MAX);
    });
    assert_eq!(created(&cluster), [(0, Some((0, 0))), (1, Some((0, 0)))]);
    cluster.reconcile();
    let first = pod_of(&cluster, 1);
    end(&mut cluster, 1, 1);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(
        cluster.job.status.failed, 0,
        "it is counted when it is replaced"
    );
    assert!(!cluster.pods[&first].metadata.finalizers.is_empty());
    assert_eq!(cluster.plan().again.unwrap().as_secs(), 10);
    cluster.now += 10;
    assert_eq!(created(&cluster), [(1, Some((1, 0)))]);
    (0..4).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed, 1);
    assert_eq!(
        cluster.pods[&pod_of(&cluster, 1)].metadata.annotations[FAILURES],
        "1"
    );
    end(&mut cluster, 1, 1);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed_indexes.as_deref(), Some("1"));
    assert_eq!(
        cluster.reason("FailureTarget"),
        None,
        "the other index goes on"
    );
    end(&mut cluster, 0, 0);
    cluster.finish(|_| 0);
    assert_eq!(cluster.reason("Failed"), Some("FailedIndexes"));
    assert_eq!(cluster.job.status.completed_indexes, "0");
}

#[test]
fn a_failure_of_one_index_does_not_delay_the_pods_of_others() {
    let mut cluster = Cluster::indexed(2, |job| {
        job.spec.backoff_limit_per_index = Some(1);
        job.spec.backoff_limit = Some(i32::MAX);
    });
    cluster.add("pi-0-x", Some(0));
    end(&mut cluster, 0, 1);
    assert_eq!(created(&cluster), [(1, Some((0, 0)))]);
}

/// Checks J4.
#[test]
fn the_failures_of_an_index_are_those_before_its_last_pod_and_that_one() {
    for (action, failures) in [("Count", (2, 0)), ("Ignore", (1, 1))] {
        let mut cluster = Cluster::indexed(1, |job| {
            job.spec.backoff_limit_per_index = Some(5);
            job.spec.backoff_limit = Some(i32::MAX);
            let codes = PodFailurePolicyOnExitCodesRequirement {
                operator: "In".into(),
                values: vec![1],
                ..Default::default()
            };
            let rule = PodFailurePolicyRule {
                action: action.into(),
                on_exit_codes: Some(codes),
                ..Default::default()
            };
            job.spec.pod_failure_policy = Some(PodFailurePolicy { rules: vec![rule] });
        });
        for (name, before) in [("pi-0-a", "0"), ("pi-0-b", "1")] {
            let annotations = &mut cluster.add(name, Some(0)).metadata.annotations;
            annotations.insert(FAILURES.into(), before.into());
            cluster.end(name, 1);
        }
        (0..3).for_each(|_| _ = cluster.reconcile());
        let tracked = |name: &str| !cluster.pods[name].metadata.finalizers.is_empty();
        assert_eq!(["pi-0-a", "pi-0-b"].map(tracked), [false, true]);
        cluster.now += 600;
        assert_eq!(created(&cluster), [(0, Some(failures))], "{action}");
    }
}

#[test]
fn too_many_failed_indexes_fail_the_job() {
    let mut cluster = Cluster::indexed(4, |job| {
        job.spec.backoff_limit_per_index = Some(0);
        job.spec.max_failed_indexes = Some(1);
        job.spec.backoff_limit = Some(i32::MAX);
    });
    cluster.reconcile();
    end(&mut cluster, 0, 1);
    cluster.reconcile();
    assert_eq!(cluster.reason("FailureTarget"), None);
    end(&mut cluster, 2, 1);
    cluster.finish(|_| 0);
    assert_eq!(cluster.reason("Failed"), Some("MaxFailedIndexesExceeded"));
    assert_eq!(cluster.job.status.failed_indexes.as_deref(), Some("0,2"));
    assert_eq!(
        cluster.job.status.failed, 4,
        "the Pods that were stopped have failed, too"
    );
}

#[test]
fn a_success_policy_ends_the_job_before_all_indexes_have_succeeded() {
    let rule = |indexes: Option<&str>, count| SuccessPolicyRule {
        succeeded_indexes: indexes.map(str::to_owned),
        succeeded_count: count,
    };
    for (rule, completed, met) in [
        (rule(Some("0-1"), None), "0-1", true),
        (rule(Some("0-1"), None), "1-3", false),
        (rule(Some("0-2"), Some(2)), "1-3", true),
        (rule(Some("0-2"), Some(2)), "2-4", false),
        (rule(None, Some(2)), "2-3", true),
        (rule(None, Some(2)), "3", false),
        (rule(None, Some(0)), "", false),
        (rule(Some("7-8"), None), "0", false),
    ] {
        let mut cluster = Cluster::indexed(6, |job| {
            job.spec.success_policy = Some(SuccessPolicy {
                rules: vec![rule.clone()],
            });
            job.status.completed_indexes = completed.into();
        });
        cluster.add("pi-5-x", Some(5));
        cluster.run("pi-5-x");
        cluster.reconcile();
        let expected = met.then_some("SuccessPolicy");
        assert_eq!(
            cluster.reason("SuccessCriteriaMet"),
            expected,
            "{rule:?} {completed}"
        );
        if met {
            cluster.reconcile();
            cluster.end("pi-5-x", 1);
            cluster.reconcile();
            assert_eq!(cluster.reason("Complete"), Some("SuccessPolicy"));
            assert_eq!(cluster.job.status.failed, 0, "stopped Pods have not failed");
        }
    }
}
