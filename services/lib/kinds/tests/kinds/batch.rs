//! Jobs and CronJobs: the cases of upstream's `validation_test.go`.

use serde_json::{Value, json};

use crate::table::Base;

fn template() -> Value {
    json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": "OnFailure", "containers": [{"name": "abc", "image": "image"}]},
    })
}

fn job() -> Base {
    Base {
        resource: "jobs.batch",
        object: json!({"metadata": {"name": "myjob"}, "spec": {"template": template()}}),
    }
}

fn indexed() -> Base {
    let mut base = job();
    base.object["spec"]["completionMode"] = "Indexed".into();
    base.object["spec"]["completions"] = 5.into();
    base.object["spec"]["backoffLimitPerIndex"] = 1.into();
    base
}

fn never() -> Base {
    let mut base = indexed();
    base.object["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    base
}

fn cron() -> Base {
    let job = json!({"spec": {"template": template()}});
    Base {
        resource: "cronjobs.batch",
        object: json!({"metadata": {"name": "mycron"}, "spec": {"schedule": "* * * * ?", "jobTemplate": job}}),
    }
}

#[test]
fn jobs() {
    job().created(&[
        ("", ""),
        ("spec.parallelism=-1", "Invalid spec.parallelism"),
        ("spec.completions=-1", "Invalid spec.completions"),
        (
            "spec.activeDeadlineSeconds=-1",
            "Invalid spec.activeDeadlineSeconds",
        ),
        ("spec.backoffLimit=-1", "Invalid spec.backoffLimit"),
        (
            "spec.ttlSecondsAfterFinished=-1",
            "Invalid spec.ttlSecondsAfterFinished",
        ),
        (
            r#"spec.template.spec.restartPolicy="Always""#,
            "Required spec.template.spec.restartPolicy",
        ),
        (
            "spec.template.spec.restartPolicy=null",
            "Required spec.template.spec.restartPolicy",
        ),
        (
            r#"spec.completionMode="Other""#,
            "NotSupported spec.completionMode",
        ),
        (
            "spec.backoffLimitPerIndex=1",
            "Invalid spec.backoffLimitPerIndex",
        ),
        (
            "spec.maxFailedIndexes=1",
            "Required spec.backoffLimitPerIndex, Invalid spec.maxFailedIndexes",
        ),
        (
            r#"spec.completionMode="Indexed" ; spec.parallelism=1"#,
            "Required spec.completions",
        ),
        (r#"spec.managedBy="example.com/foo""#, ""),
        (r#"spec.managedBy="foo""#, "Invalid spec.managedBy"),
        (r#"spec.managedBy="""#, "Required spec.managedBy"),
        (r#"spec.podReplacementPolicy="Failed""#, ""),
        (
            r#"spec.podReplacementPolicy="Other""#,
            "NotSupported spec.podReplacementPolicy",
        ),
        (
            r#"spec.template.metadata.labels={"controller-uid":"1a2b3c"}"#,
            "Invalid spec.template.metadata.labels[controller-uid]",
        ),
        (
            r#"spec.template.metadata.labels={"job-name":"other"}"#,
            "Invalid spec.template.metadata.labels[job-name]",
        ),
        (
            r#"spec.selector={"matchLabels":{"a":"c"}}"#,
            "Invalid spec.selector, Invalid spec.template.metadata.labels",
        ),
        (
            r#"spec.manualSelector=true ; spec.selector={"matchLabels":{"a":"b"}}"#,
            "",
        ),
        (
            "spec.manualSelector=true",
            "Required spec.selector, Invalid spec.template.metadata.labels",
        ),
        (
            r#"spec.successPolicy={"rules":[{"succeededCount":1}]}"#,
            "Invalid spec.successPolicy",
        ),
    ]);
    indexed()
        .created(&[
            ("", ""),
            ("spec.parallelism=100001", "Invalid spec.parallelism"),
            ("spec.maxFailedIndexes=6", "Invalid spec.maxFailedIndexes"),
            ("spec.completions=100001", "Required spec.maxFailedIndexes"),
            (
                "spec.completions=200000 ; spec.maxFailedIndexes=10001 ; spec.parallelism=10001",
                "Invalid spec.maxFailedIndexes, Invalid spec.parallelism",
            ),
            (
                r#"metadata.name="a123456789012345678901234567890123456789012345678901234567890""#,
                "",
            ),
            (
                r#"metadata.name="a12345678901234567890123456789012345678901234567890123456789012""#,
                "Invalid metadata.name",
            ),
            (r#"spec.successPolicy={"rules":[{"succeededCount":3,"succeededIndexes":"0-2"}]}"#, ""),
            (r#"spec.successPolicy={}"#, "Required spec.successPolicy.rules"),
            (r#"spec.successPolicy={"rules":[{}]}"#, "Required spec.successPolicy.rules[0]"),
            (
                r#"spec.successPolicy={"rules":[{"succeededIndexes":"0-5"}]}"#,
                "Invalid spec.successPolicy.rules[0].succeededIndexes",
            ),
            (
                r#"spec.successPolicy={"rules":[{"succeededCount":3,"succeededIndexes":"0-1"}]}"#,
                "Invalid spec.successPolicy.rules[0].succeededCount",
            ),
            (
                r#"spec.successPolicy={"rules":[{"succeededCount":6}]}"#,
                "Invalid spec.successPolicy.rules[0].succeededCount",
            ),
            (
                r#"spec.podFailurePolicy={"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]}"#,
                "Invalid spec.template.spec.restartPolicy",
            ),
        ]);
}

#[test]
fn pod_failure_policies() {
    never()
        .created(&[
            (r#"spec.podFailurePolicy={"rules":[{"action":"FailIndex","onExitCodes":{"operator":"In","values":[1,2]}}]}"#, ""),
            (r#"spec.podFailurePolicy={"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}"#, ""),
            (r#"spec.podReplacementPolicy="TerminatingOrFailed" ; spec.podFailurePolicy={}"#, "NotSupported spec.podReplacementPolicy"),
            (
                r#"spec.podFailurePolicy={"rules":[{"action":"","onExitCodes":{"operator":"","values":[]}}]}"#,
                "Required spec.podFailurePolicy.rules[0].action, Required spec.podFailurePolicy.rules[0].onExitCodes.operator, Invalid spec.podFailurePolicy.rules[0].onExitCodes.values",
            ),
            (
                r#"spec.podFailurePolicy={"rules":[{"action":"Other","onExitCodes":{"operator":"In","values":[0]}}]}"#,
                "NotSupported spec.podFailurePolicy.rules[0].action, Invalid spec.podFailurePolicy.rules[0].onExitCodes.values[0]",
            ),
            (
                r#"spec.podFailurePolicy={"rules":[{"action":"Count","onExitCodes":{"operator":"NotIn","values":[3,1,1],"containerName":"xyz"}}]}"#,
                "Invalid spec.podFailurePolicy.rules[0].onExitCodes.containerName, Duplicate spec.podFailurePolicy.rules[0].onExitCodes.values[2], Invalid spec.podFailurePolicy.rules[0].onExitCodes.values",
            ),
            (r#"spec.podFailurePolicy={"rules":[{"action":"Count"}]}"#, "Invalid spec.podFailurePolicy.rules[0]"),
            (
                r#"spec.podFailurePolicy={"rules":[{"action":"Count","onPodConditions":[{"type":"Other Condition","status":"Maybe"}]}]}"#,
                "Invalid spec.podFailurePolicy.rules[0].onPodConditions[0].type, NotSupported spec.podFailurePolicy.rules[0].onPodConditions[0].status",
            ),
        ]);
}

#[test]
fn changes_of_jobs() {
    let template = "Invalid spec.template";
    job()
        .updated(&[
            ("", "spec.parallelism=2 ; spec.backoffLimit=3 ; spec.activeDeadlineSeconds=5", ""),
            ("", "spec.suspend=true", ""),
            ("", "spec.completions=2", "Invalid spec.completions"),
            ("", r#"spec.completionMode="Indexed""#, "Invalid spec.completionMode"),
            ("", r#"spec.template.spec.containers[0].image="other""#, template),
            ("", r#"spec.template.spec.nodeSelector={"a":"b"}"#, template),
            ("", r#"spec.managedBy="example.com/foo""#, "Invalid spec.managedBy"),
            ("spec.suspend=true", r#"spec.template.spec.nodeSelector={"a":"b"} ; spec.template.metadata.annotations={"a":"b"}"#, ""),
            ("spec.suspend=true", r#"spec.template.spec.containers[0].resources={"requests":{"cpu":"1"}}"#, ""),
            ("spec.suspend=true", r#"spec.template.spec.containers[0].image="other""#, "Invalid spec.template.spec"),
            (
                "spec.suspend=true",
                r#"spec.template.spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}"#,
                "",
            ),
            ("", "spec.parallelism=-1", "Invalid spec.parallelism, Invalid spec.parallelism"),
        ]);
    indexed().updated(&[
        ("", "spec.completions=6 ; spec.parallelism=6", ""),
        ("", "spec.completions=6", "Invalid spec.completions"),
        (
            "",
            "spec.backoffLimitPerIndex=2",
            "Invalid spec.backoffLimitPerIndex",
        ),
        (
            "",
            r#"spec.successPolicy={"rules":[{"succeededCount":1}]}"#,
            "Invalid spec.successPolicy",
        ),
    ]);
}

#[test]
fn statuses_of_jobs() {
    let conditions = "Invalid status.conditions";
    let complete = r#"status={"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}"#;
    job()
        .reported(&[
            ("", r#"status={"active":2,"ready":1,"terminating":1}"#, ""),
            ("", complete, ""),
            (
                "",
                r#"status={"active":-1,"succeeded":-1,"failed":-1,"ready":-1,"terminating":-1}"#,
                "Invalid status.active, Invalid status.succeeded, Invalid status.failed, Invalid status.ready, Invalid status.terminating, Invalid status.failed, Invalid status.succeeded",
            ),
            ("", r#"status={"active":1,"ready":2}"#, "Invalid status.ready"),
            (
                "",
                r#"status={"uncountedTerminatedPods":{"succeeded":["a","b"],"failed":["","a"]}}"#,
                "Invalid status.uncountedTerminatedPods.failed[0], Duplicate status.uncountedTerminatedPods.failed[1]",
            ),
            (
                "",
                r#"status={"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Failed","status":"True"}]}"#,
                conditions,
            ),
            (
                "",
                r#"status={"startTime":"2026-01-01T00:00:00Z","completionTime":"2026-01-01T00:01:00Z","conditions":[{"type":"Complete","status":"True"}]}"#,
                conditions,
            ),
            (
                "",
                r#"status={"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}"#,
                "Required status.completionTime",
            ),
            (
                "",
                r#"status={"startTime":"2026-01-01T00:02:00Z","completionTime":"2026-01-01T00:01:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}]}"#,
                "Invalid status.completionTime",
            ),
            ("", r#"status={"completionTime":"2026-01-01T00:01:00Z"}"#, "Invalid status.completionTime"),
            (
                "",
                r#"status={"active":1,"terminating":1,"conditions":[{"type":"FailureTarget","status":"True"},{"type":"Failed","status":"True"}]}"#,
                "Invalid status.active, Invalid status.terminating, Required status.startTime",
            ),
            (complete, r#"status.conditions=[]"#, "Invalid status.conditions, Invalid status.conditions, Invalid status.completionTime"),
            (complete, r#"status.completionTime="2026-01-01T00:03:00Z""#, "Invalid status.completionTime"),
            (r#"status={"startTime":"2026-01-01T00:00:00Z"}"#, r#"status.startTime="2026-01-02T00:00:00Z""#, "Invalid status.startTime"),
            (r#"status={"succeeded":2,"failed":2}"#, r#"status={"succeeded":1,"failed":1}"#, "Invalid status.succeeded, Invalid status.failed"),
            ("", r#"status={"completedIndexes":"0"}"#, "Invalid status.completedIndexes"),
            ("", r#"status={"failedIndexes":"0"}"#, "Invalid status.failedIndexes"),
        ]);
    indexed().reported(&[
        (
            "",
            r#"status={"completedIndexes":"0,2-3","failedIndexes":"1"}"#,
            "",
        ),
        (
            "",
            r#"status={"completedIndexes":"0,5"}"#,
            "Invalid status.completedIndexes",
        ),
        (
            "",
            r#"status={"completedIndexes":"2","failedIndexes":"1-3"}"#,
            "Invalid status.failedIndexes",
        ),
    ]);
}

#[test]
fn cron_jobs() {
    let (schedule, zone) = ("Invalid spec.schedule", "Invalid spec.timeZone");
    cron().created(&[
        ("", ""),
        (r#"spec.schedule="@hourly""#, ""),
        (r#"spec.schedule="@every 1h""#, ""),
        (r#"spec.schedule="0 */2 1-7 * MON-FRI""#, ""),
        (r#"spec.timeZone="America/New_York""#, ""),
        (r#"spec.timeZone="UTC""#, ""),
        (r#"spec.schedule="error""#, schedule),
        (r#"spec.schedule="""#, "Required spec.schedule"),
        (r#"spec.schedule="* * * * * *""#, schedule),
        (r#"spec.schedule="TZ=UTC 0 * * * *""#, schedule),
        (r#"spec.schedule="CRON_TZ=UTC 0 * * * *""#, schedule),
        (
            r#"spec.schedule="TZ=0""#,
            "Invalid spec.schedule, Invalid spec.schedule",
        ),
        (
            r#"spec.schedule="TZ=Nowhere 0 * * * *""#,
            "Invalid spec.schedule, Invalid spec.schedule",
        ),
        (r#"spec.timeZone="""#, zone),
        (r#"spec.timeZone="Local""#, zone),
        (
            r#"spec.timeZone="local""#,
            "Invalid spec.timeZone, Invalid spec.timeZone",
        ),
        (r#"spec.timeZone="America/New York""#, zone),
        (r#"spec.timeZone="America/Rothgar""#, zone),
        (r#"spec.timeZone="america/new_york""#, zone),
        (r#"spec.timeZone=" America/New_York""#, zone),
        (r#"spec.timeZone="../UTC""#, zone),
        (
            "spec.startingDeadlineSeconds=-1",
            "Invalid spec.startingDeadlineSeconds",
        ),
        (
            "spec.successfulJobsHistoryLimit=-1",
            "Invalid spec.successfulJobsHistoryLimit",
        ),
        (
            "spec.failedJobsHistoryLimit=-1",
            "Invalid spec.failedJobsHistoryLimit",
        ),
        (r#"spec.concurrencyPolicy="Forbid""#, ""),
        (
            r#"spec.concurrencyPolicy="other""#,
            "NotSupported spec.concurrencyPolicy",
        ),
        (
            "spec.jobTemplate.spec.parallelism=-1",
            "Invalid spec.jobTemplate.spec.parallelism",
        ),
        (
            "spec.jobTemplate.spec.selector={}",
            "Invalid spec.jobTemplate.spec.selector",
        ),
        (
            "spec.jobTemplate.spec.manualSelector=true",
            "NotSupported spec.jobTemplate.spec.manualSelector",
        ),
        (
            "spec.jobTemplate.spec.template.spec.restartPolicy=null",
            "Required spec.jobTemplate.spec.template.spec.restartPolicy",
        ),
        (
            r#"metadata.name="10000000002000000000300000000040000000005000000000123""#,
            "Invalid metadata.name",
        ),
    ]);
    cron().updated(&[
        ("", r#"spec.schedule="5 5 * * ?""#, ""),
        ("", r#"spec.schedule="x""#, schedule),
        ("", r#"spec.timeZone="Nowhere""#, zone),
    ]);
}
