//! How Jobs end: the limits, the failure policy, the time to live.

use setpoint_controller::View as _;
use setpoint_job_controller::{Action, JobView};
use setpoint_proto::batch::{
    PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
};
use setpoint_proto::core::PodCondition;

use crate::decisions::cluster::{Cluster, at};

fn message<'c>(cluster: &'c Cluster, kind: &str) -> &'c str {
    let conditions = &cluster.job.status.conditions;
    &conditions
        .iter()
        .find(|condition| condition.r#type == kind)
        .unwrap()
        .message
}

fn fail(cluster: &mut Cluster, code: i32) {
    cluster.now += 600;
    cluster.reconcile();
    let name = cluster.names("Pending").remove(0);
    cluster.run(&name);
    cluster.end(&name, code);
    (0..3).for_each(|_| _ = cluster.reconcile());
}

#[test]
fn a_job_completes_with_its_last_success() {
    let mut cluster =
        Cluster::new(|job| (job.spec.parallelism, job.spec.completions) = (Some(2), Some(3)));
    cluster.finish(|_| 0);
    let status = &cluster.job.status;
    assert_eq!(status.succeeded, 3);
    let kinds: Vec<_> = status
        .conditions
        .iter()
        .map(|one| (&*one.r#type, &*one.reason))
        .collect();
    assert_eq!(
        kinds,
        [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached")
        ]
    );
    assert_eq!(
        message(&cluster, "Complete"),
        "Reached expected number of succeeded pods"
    );
    assert_eq!(status.completion_time, Some(at(cluster.now).into()));
}

#[test]
fn a_job_without_completions_ends_when_its_pods_have_after_a_success() {
    let mut cluster =
        Cluster::new(|job| (job.spec.parallelism, job.spec.completions) = (Some(2), None));
    cluster.reconcile();
    let names = cluster.names("Pending");
    names.iter().for_each(|name| cluster.run(name));
    cluster.end(&names[0], 0);
    (0..4).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.reason("SuccessCriteriaMet"), None);
    cluster.end(&names[1], 1);
    (0..4).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.reason("Complete"), Some("CompletionsReached"));
    assert_eq!(
        (cluster.job.status.succeeded, cluster.job.status.failed),
        (1, 1)
    );
}

#[test]
fn a_job_with_nothing_to_do_completes_even_if_suspended() {
    let mut cluster = Cluster::new(|job| {
        job.spec.completions = Some(0);
        job.spec.suspend = Some(true);
    });
    (0..2).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.reason("Complete"), Some("CompletionsReached"));
    assert_eq!(cluster.job.status.start_time, None);
}

/// Checks J4.
#[test]
fn one_failure_more_than_the_limit_fails_the_job() {
    for limit in 0..3 {
        let mut cluster = Cluster::new(|job| job.spec.backoff_limit = Some(limit));
        for _ in 0..limit {
            fail(&mut cluster, 1);
            assert_eq!(cluster.reason("FailureTarget"), None);
        }
        fail(&mut cluster, 1);
        assert_eq!(cluster.reason("Failed"), Some("BackoffLimitExceeded"));
        assert_eq!(
            message(&cluster, "Failed"),
            "Job has reached the specified backoff limit"
        );
        assert_eq!(cluster.job.status.failed, limit + 1);
        assert_eq!(cluster.job.status.completion_time, None);
    }
}

/// Checks J4.
#[test]
fn restarts_of_containers_count_if_pods_restart_them() {
    for (policy, limit, restarts, fails) in [
        ("OnFailure", 0, 1, true),
        ("OnFailure", 0, 0, false),
        ("OnFailure", 3, 3, true),
        ("OnFailure", 3, 2, false),
        ("Never", 0, 9, false),
    ] {
        let mut cluster = Cluster::new(|job| {
            job.spec.backoff_limit = Some(limit);
            job.spec.template.spec.restart_policy = policy.into();
        });
        cluster.add("pi-a", None).status.container_statuses =
            vec![setpoint_proto::core::ContainerStatus {
                restart_count: restarts,
                ..Default::default()
            }];
        cluster.reconcile();
        assert_eq!(
            cluster.reason("FailureTarget").is_some(),
            fails,
            "{policy} {limit} {restarts}"
        );
    }
}

#[test]
fn a_job_fails_at_its_deadline_and_stops_its_pods_first() {
    let mut cluster = Cluster::new(|job| job.spec.active_deadline_seconds = Some(60));
    cluster.reconcile();
    let name = cluster.names("Pending").remove(0);
    cluster.run(&name);
    assert_eq!(cluster.reconcile().again.unwrap().as_secs(), 60);
    cluster.now += 60;
    cluster.reconcile();
    assert_eq!(cluster.reason("FailureTarget"), Some("DeadlineExceeded"));
    assert!(
        cluster.pods[&name].metadata.deletion_timestamp.is_none(),
        "the reason of the end is stored first"
    );
    cluster.reconcile();
    assert!(cluster.pods[&name].metadata.deletion_timestamp.is_some());
    cluster.reconcile();
    assert_eq!(cluster.reason("Failed"), None, "the Pod is terminating");
    assert_eq!(
        (cluster.job.status.failed, cluster.job.status.terminating),
        (1, Some(1))
    );
    cluster.end(&name, 0);
    cluster.reconcile();
    assert_eq!(cluster.reason("Failed"), Some("DeadlineExceeded"));
    assert_eq!(
        message(&cluster, "Failed"),
        "Job was active longer than specified deadline"
    );
    assert_eq!(
        (cluster.job.status.succeeded, cluster.job.status.failed),
        (0, 1)
    );
}

fn policy(action: &str) -> PodFailurePolicy {
    let codes = PodFailurePolicyOnExitCodesRequirement {
        container_name: Some("main".into()),
        operator: "In".into(),
        values: vec![42],
    };
    let disrupted = PodFailurePolicyOnPodConditionsPattern {
        r#type: "DisruptionTarget".into(),
        status: "True".into(),
    };
    let rule = |on_exit_codes, on_pod_conditions| PodFailurePolicyRule {
        action: action.into(),
        on_exit_codes,
        on_pod_conditions,
    };
    PodFailurePolicy {
        rules: vec![rule(None, vec![disrupted]), rule(Some(codes), Vec::new())],
    }
}

#[test]
fn a_failure_policy_decides_what_a_failure_means() {
    for (action, code, failed, reason) in [
        ("FailJob", 42, 1, Some("PodFailurePolicy")),
        ("FailJob", 1, 1, None),
        ("Ignore", 42, 0, None),
        ("Ignore", 1, 1, None),
        ("Count", 42, 1, None),
    ] {
        let mut cluster = Cluster::new(|job| job.spec.pod_failure_policy = Some(policy(action)));
        fail(&mut cluster, code);
        assert_eq!(cluster.reason("Failed"), reason, "{action} {code}");
        assert_eq!(cluster.job.status.failed, failed, "{action} {code}");
        assert!(
            cluster
                .pods
                .values()
                .all(|pod| pod.metadata.finalizers.is_empty() || pod.status.phase == "Pending")
        );
    }
}

/// Returns whether a Pod that ends with this code fails a Job of this rule.
fn fails_job(rule: PodFailurePolicyRule, code: i32, conditions: &[PodCondition]) -> bool {
    let policy = PodFailurePolicy { rules: vec![rule] };
    let mut cluster = Cluster::new(|job| job.spec.pod_failure_policy = Some(policy));
    cluster.add("pi-a", None);
    cluster.end("pi-a", code);
    let status = &mut cluster.change("pi-a").status;
    status.conditions.extend_from_slice(conditions);
    cluster.reconcile();
    cluster.reason("FailureTarget") == Some("PodFailurePolicy")
}

#[test]
fn a_rule_compares_the_exit_codes_of_its_container_or_of_all() {
    for (container, operator, code, fails) in [
        (None, "In", 42, true),
        (None, "In", 1, false),
        (None, "NotIn", 42, false),
        (None, "NotIn", 1, true),
        (Some("main"), "NotIn", 1, true),
        (Some("sidecar"), "In", 42, false),
        (Some("sidecar"), "NotIn", 1, false),
    ] {
        let codes = PodFailurePolicyOnExitCodesRequirement {
            container_name: container.map(str::to_owned),
            operator: operator.into(),
            values: vec![42],
        };
        let rule = PodFailurePolicyRule {
            action: "FailJob".into(),
            on_exit_codes: Some(codes),
            ..Default::default()
        };
        let case = format!("{container:?} {operator} {code}");
        assert_eq!(fails_job(rule, code, &[]), fails, "{case}");
    }
}

#[test]
fn a_rule_compares_type_and_status_of_a_condition() {
    for (kind, status, fails) in [
        ("DisruptionTarget", "True", true),
        ("DisruptionTarget", "False", false),
        ("PodScheduled", "True", false),
    ] {
        let pattern = PodFailurePolicyOnPodConditionsPattern {
            r#type: "DisruptionTarget".into(),
            status: "True".into(),
        };
        let rule = PodFailurePolicyRule {
            action: "FailJob".into(),
            on_pod_conditions: vec![pattern],
            ..Default::default()
        };
        let condition = PodCondition {
            r#type: kind.into(),
            status: status.into(),
            ..Default::default()
        };
        let failed = fails_job(rule, 1, &[condition]);
        assert_eq!(failed, fails, "{kind} {status}");
    }
}

#[test]
fn the_message_of_a_failure_policy_names_pod_and_rule() {
    let mut cluster = Cluster::new(|job| job.spec.pod_failure_policy = Some(policy("FailJob")));
    cluster.add("pi-a", None);
    cluster.end("pi-a", 42);
    cluster.reconcile();
    let expected = "Container main for pod production/pi-a failed with exit code 42 matching FailJob rule at index 1";
    assert_eq!(message(&cluster, "FailureTarget"), expected);

    let mut cluster = Cluster::new(|job| job.spec.pod_failure_policy = Some(policy("FailJob")));
    cluster.add("pi-a", None);
    cluster.end("pi-a", 1);
    cluster.change("pi-a").status.conditions.push(PodCondition {
        r#type: "DisruptionTarget".into(),
        status: "True".into(),
        ..Default::default()
    });
    cluster.reconcile();
    let expected =
        "Pod production/pi-a has condition DisruptionTarget matching FailJob rule at index 0";
    assert_eq!(message(&cluster, "FailureTarget"), expected);
}

#[test]
fn a_failed_index_does_not_wait_for_its_limit() {
    let mut cluster = Cluster::indexed(2, |job| {
        job.spec.backoff_limit_per_index = Some(5);
        job.spec.backoff_limit = Some(i32::MAX);
        job.spec.pod_failure_policy = Some(policy("FailIndex"));
    });
    cluster.reconcile();
    let name = cluster.names("Pending").remove(1);
    cluster.end(&name, 42);
    (0..3).for_each(|_| _ = cluster.reconcile());
    assert_eq!(cluster.job.status.failed_indexes.as_deref(), Some("1"));
    assert_eq!(cluster.job.status.failed, 1);
}

#[test]
fn a_finished_job_is_deleted_when_its_time_to_live_is_over() {
    let mut cluster = Cluster::new(|job| job.spec.ttl_seconds_after_finished = Some(30));
    cluster.finish(|_| 0);
    assert!(JobView::of(cluster.job.clone()).finished().is_some());
    assert_eq!(cluster.plan().again.unwrap().as_secs(), 30);
    cluster.now += 30;
    let plan = cluster.reconcile();
    assert!(matches!(&plan.steps[..], [step] if step.action == Action::DeleteJob));
    assert!(cluster.plan().is_empty(), "it is being deleted");
}

#[test]
fn a_changed_spec_does_not_change_how_a_job_ends() {
    let mut cluster = Cluster::new(|job| job.spec.backoff_limit = Some(0));
    cluster.add("pi-a", None);
    cluster.end("pi-a", 1);
    cluster.reconcile();
    cluster.edit(|job| job.spec.backoff_limit = Some(9));
    cluster.finish(|_| 0);
    assert_eq!(cluster.reason("Failed"), Some("BackoffLimitExceeded"));
}
