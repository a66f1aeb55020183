//! Random histories of a Job, in which the controller crashes between any two writes and its caches lag.

use std::collections::BTreeSet;

use proptest::prelude::*;
use setpoint_job_controller::{Indexes, TRACKING, World};
use setpoint_proto::batch::{
    Job, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
    SuccessPolicy, SuccessPolicyRule,
};

use crate::decisions::cluster::{Cluster, job_is_indexed};

#[derive(Clone, Debug)]
enum Event {
    Run(usize),
    End(usize, i32),
    Delete(usize),
    Parallelism(i32),
    Suspend(bool),
    Pass(i64),
    SyncJob,
    SyncPods,
    /// Reconciles, with this many writes before a crash.
    Reconcile(usize),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pod = || 0..8_usize;
    let event = prop_oneof![
        3 => pod().prop_map(Event::Run),
        4 => (pod(), 0..3_i32).prop_map(|(pod, code)| Event::End(pod, code)),
        1 => pod().prop_map(Event::Delete),
        1 => (0..5_i32).prop_map(Event::Parallelism),
        1 => any::<bool>().prop_map(Event::Suspend),
        3 => (1..400_i64).prop_map(Event::Pass),
        2 => Just(Event::SyncJob),
        2 => Just(Event::SyncPods),
        8 => prop_oneof![2 => Just(usize::MAX), 3 => 0..5_usize].prop_map(Event::Reconcile),
    ];
    prop::collection::vec(event, 0..60)
}

fn policy(action: &str) -> PodFailurePolicy {
    let codes = PodFailurePolicyOnExitCodesRequirement {
        operator: "In".into(),
        values: vec![2],
        ..Default::default()
    };
    let rule = PodFailurePolicyRule {
        action: action.into(),
        on_exit_codes: Some(codes),
        ..Default::default()
    };
    PodFailurePolicy { rules: vec![rule] }
}

fn clusters() -> impl Strategy<Value = Cluster> {
    let limits = (
        0..8_i32,
        prop::option::of(0..3_i32),
        prop::option::of(0..3_i32),
    );
    let policies = (0..5_usize, any::<bool>(), prop::option::of(1..4_i32));
    let sizes = (
        1..5_i32,
        prop::option::of(0..6_i32),
        prop::option::of(50..2_000_i64),
    );
    (sizes, any::<bool>(), limits, policies).prop_map(|(sizes, indexed, limits, policies)| {
        Cluster::new(|job| {
            let spec = &mut job.spec;
            (spec.parallelism, spec.completions) = (Some(sizes.0), sizes.1);
            spec.active_deadline_seconds = sizes.2;
            spec.backoff_limit = Some(limits.0);
            let action = ["FailJob", "Ignore", "Count", "FailIndex"].get(policies.0);
            spec.pod_failure_policy = action.map(|action| policy(action));
            let replacement = if policies.1 {
                "Failed"
            } else {
                "TerminatingOrFailed"
            };
            spec.pod_replacement_policy = Some(replacement.into());
            if indexed {
                index(job, limits.1, limits.2, policies.2);
            }
        })
    })
}

fn index(job: &mut Job, per_index: Option<i32>, most: Option<i32>, enough: Option<i32>) {
    let spec = &mut job.spec;
    spec.completion_mode = Some("Indexed".into());
    spec.completions.get_or_insert(3);
    spec.backoff_limit_per_index = per_index;
    spec.max_failed_indexes = most.filter(|_| per_index.is_some());
    let rule = |count| SuccessPolicyRule {
        succeeded_count: Some(count),
        ..Default::default()
    };
    spec.success_policy = enough.map(|count| SuccessPolicy {
        rules: vec![rule(count)],
    });
}

fn happen(cluster: &mut Cluster, event: &Event) {
    let nth = |cluster: &Cluster, n: usize, phases: &[&str]| {
        let pods = cluster
            .pods
            .values()
            .filter(|pod| phases.contains(&&*pod.status.phase));
        let names: Vec<_> = pods.map(|pod| pod.metadata.name.clone()).collect();
        names.get(n % names.len().max(1)).cloned()
    };
    match *event {
        Event::Run(n) => nth(cluster, n, &["Pending"])
            .iter()
            .for_each(|name| cluster.run(name)),
        Event::End(n, code) => {
            nth(cluster, n, &["Running"])
                .iter()
                .for_each(|name| cluster.end(name, code));
        }
        Event::Delete(n) => {
            let any = ["Pending", "Running", "Succeeded", "Failed"];
            nth(cluster, n, &any)
                .iter()
                .for_each(|name| cluster.delete(name));
        }
        Event::Parallelism(n) => cluster.edit(|job| job.spec.parallelism = Some(n)),
        Event::Suspend(suspend) => cluster.edit(|job| job.spec.suspend = Some(suspend)),
        Event::Pass(seconds) => cluster.now += seconds,
        Event::SyncJob => cluster.sync_job(),
        Event::SyncPods => cluster.sync_pods(),
        Event::Reconcile(writes) => cluster.reconcile_cached(writes),
    }
}

/// Checks that every Pod which ended while it was tracked is counted, unless the failure policy ignores it.
fn check_counts(cluster: &Cluster) {
    let status = &cluster.job.status;
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    assert!(uncounted.succeeded.is_empty() && uncounted.failed.is_empty());
    assert_eq!(status.failed as usize, cluster.counted.1.len());
    let spec = &cluster.job.spec;
    let ignores = spec
        .pod_failure_policy
        .as_ref()
        .is_some_and(|it| it.rules[0].action == "Ignore");
    let valid = |index: Option<usize>| {
        !job_is_indexed(&cluster.job)
            || index.is_some_and(|index| index < spec.completions.unwrap() as usize)
    };
    let mut indexes = BTreeSet::new();
    for (uid, (succeeded, index)) in &cluster.ended {
        let counted = (
            cluster.counted.0.contains(uid),
            cluster.counted.1.contains(uid),
        );
        match succeeded {
            true if counted.1 => {}
            true if job_is_indexed(&cluster.job) => indexes.extend(*index),
            true => assert!(counted.0, "the success of {uid} is lost"),
            false if ignores || !valid(*index) => {}
            false => assert!(counted.1, "the failure of {uid} is lost"),
        }
    }
    if job_is_indexed(&cluster.job) {
        let indexes: Indexes = indexes.into_iter().collect();
        assert_eq!(status.completed_indexes, indexes.to_string());
        assert_eq!(status.succeeded as usize, indexes.count());
    } else {
        assert_eq!(status.succeeded as usize, cluster.counted.0.len());
    }
}

/// Checks that the plan exceeds no limit and does not create and delete.
fn check_plan(world: &World) {
    use setpoint_job_controller::{Action, plan};
    let plan = plan(world);
    let count = |of: fn(&Action) -> bool| plan.steps.iter().filter(|step| of(&step.action)).count();
    let creates = count(|action| matches!(action, Action::Create { .. }));
    let deletes = count(|action| matches!(action, Action::Delete(_) | Action::Discard(_)));
    assert!(creates == 0 || deletes == 0);
    assert!(creates == 0 || creates + world.active().count() <= world.job.parallelism);
    let pods: BTreeSet<_> = plan.steps.iter().map(|step| step.action.pod()).collect();
    assert_eq!(pods.len(), plan.steps.len(), "one action per Pod");
}

proptest! {
    /// Checks J4.
    #[test]
    fn every_pod_is_counted_once_whatever_is_lost_between_two_writes(mut cluster in clusters(), events in events()) {
        for event in &events {
            happen(&mut cluster, event);
            check_plan(&cluster.world());
        }
        cluster.edit(|job| {
            job.spec.suspend = Some(false);
            job.spec.parallelism = job.spec.parallelism.map(|parallelism| parallelism.max(1));
        });
        cluster.finish(|_| 0);
        check_counts(&cluster);
        let status = &cluster.job.status;
        prop_assert_eq!((status.active, status.terminating, status.ready), (0, Some(0), Some(0)));
        let tracked = cluster.pods.values().any(|pod| pod.metadata.finalizers.iter().any(|it| it == TRACKING));
        prop_assert!(!tracked);
        prop_assert!(cluster.plan().is_empty());
    }

    #[test]
    fn the_order_of_the_caches_does_not_matter(mut cluster in clusters(), events in events(), rotation in 0..8_usize) {
        for event in &events {
            happen(&mut cluster, event);
        }
        let world = cluster.world();
        let mut rotated = world.clone();
        let pods = rotated.pods.len().max(1);
        rotated.pods.rotate_left(rotation % pods);
        rotated.pods.reverse();
        let sorted = |world: &World| {
            let plan = setpoint_job_controller::plan(world);
            let mut steps: Vec<_> = plan.steps.iter().map(|step| format!("{step:?}")).collect();
            steps.sort();
            (steps, plan.again, setpoint_job_controller::status(world, &Default::default()))
        };
        prop_assert_eq!(sorted(&world), sorted(&rotated));
    }
}
