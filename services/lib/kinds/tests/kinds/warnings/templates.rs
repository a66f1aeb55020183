//! Workloads: their names, and the templates of their Pods.

use serde_json::{Value, json};

use crate::table::Base;

/// Returns a template with a secret without a name, about which there is a warning.
fn template(restart_policy: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "restartPolicy": restart_policy,
            "containers": [{"name": "web", "image": "nginx"}],
            "imagePullSecrets": [{"name": ""}],
        },
    })
}

fn workload(resource: &'static str) -> Base {
    Base {
        resource,
        object: json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": template("Always"),
            },
        }),
    }
}

const WARNING: &str = r#"spec.template.spec.imagePullSecrets[0].name: invalid empty name """#;
const NAME: &str = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]";

#[test]
fn deployments_and_replica_sets() {
    for resource in ["deployments.apps", "replicasets.apps"] {
        let base = workload(resource);
        base.warned(&[
            ("", &[WARNING]),
            (r#"metadata.name="web.a""#, &[NAME, WARNING]),
            ("spec.template.spec.imagePullSecrets=[]", &[]),
        ]);
        base.warned_of_update(&[
            ("", r#"metadata.labels={"a":"b"}"#, &[]),
            ("", "spec.replicas=2", &[WARNING]),
            ("", "spec.template.spec.imagePullSecrets=[]", &[]),
        ]);
        base.warned_of_status(&[("", "status.replicas=1", &[])]);
    }
}

#[test]
fn annotations_of_templates() {
    workload("deployments.apps").warned(&[(
        r#"spec.template.metadata.annotations={"scheduler.alpha.kubernetes.io/critical-pod":"","container.apparmor.security.beta.kubernetes.io/web":"runtime/default"} ; spec.template.spec.os={"name":"windows"} ; spec.template.spec.imagePullSecrets=[]"#,
        &[
            r#"spec.template.metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead"#,
            r#"spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]: deprecated since v1.30; use the "appArmorProfile" field instead"#,
        ],
    )]);
}

#[test]
fn grace_periods_of_templates() {
    workload("deployments.apps").warned(&[(
        "spec.template.spec.terminationGracePeriodSeconds=-1 ; spec.template.spec.imagePullSecrets=[]",
        &[
            "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
        ],
    )]);
}

#[test]
fn daemon_sets() {
    let base = workload("daemonsets.apps");
    base.warned(&[("", &[WARNING]), (r#"metadata.name="web.a""#, &[WARNING])]);
    base.warned_of_update(&[
        ("", "spec.minReadySeconds=5", &[]),
        (
            "",
            r#"spec.template.spec.containers[0].image="nginx:2""#,
            &[WARNING],
        ),
    ]);
}

#[test]
fn stateful_sets() {
    const HISTORY: &str = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
    let mut base = workload("statefulsets.apps");
    base.object["spec"]["serviceName"] = "web".into();
    base.object["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}},
    }]);
    base.warned(&[
        (
            "spec.revisionHistoryLimit=-1",
            &[
                WARNING,
                r#"spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer"#,
                HISTORY,
            ],
        ),
        (
            r#"spec.volumeClaimTemplates=[] ; spec.template.spec.imagePullSecrets=[]"#,
            &[],
        ),
    ]);
    base.warned_of_update(&[
        (
            "",
            r#"metadata.labels={"a":"b"}"#,
            &[
                r#"spec.volumeClaimTemplates[0].Spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer"#,
            ],
        ),
        (
            "spec.volumeClaimTemplates=[]",
            "spec.revisionHistoryLimit=-1",
            &[WARNING, HISTORY],
        ),
    ]);
}

#[test]
fn replication_controllers_and_pod_templates() {
    const OF_TEMPLATE: &str = r#"template.spec.imagePullSecrets[0].name: invalid empty name """#;
    let mut base = workload("replicationcontrollers");
    base.object["spec"]["selector"] = json!({"app": "web"});
    base.warned(&[
        ("", &[WARNING]),
        (r#"metadata.name="web.a""#, &[NAME, WARNING]),
    ]);
    base.warned_of_update(&[
        ("", r#"metadata.labels={"a":"b"}"#, &[]),
        ("", "spec.replicas=2", &[WARNING]),
    ]);
    let base = Base {
        resource: "podtemplates",
        object: json!({"metadata": {"name": "web.a"}, "template": template("Always")}),
    };
    base.warned(&[("", &[OF_TEMPLATE])]);
    base.warned_of_update(&[
        ("", r#"metadata.labels={"a":"b"}"#, &[]),
        (
            "",
            r#"template.spec.containers[0].image="nginx:2""#,
            &[OF_TEMPLATE],
        ),
    ]);
}

#[test]
fn jobs() {
    const MANY: &str = "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
    let base = Base {
        resource: "jobs.batch",
        object: json!({"metadata": {"name": "web"}, "spec": {"template": template("Never")}}),
    };
    base.warned(&[
        ("", &[WARNING]),
        (r#"metadata.name="web.a""#, &[NAME, WARNING]),
        (
            r#"spec.completionMode="Indexed" ; spec.completions=100001 ; spec.parallelism=10001"#,
            &[MANY, WARNING],
        ),
        (
            r#"spec.completionMode="Indexed" ; spec.completions=100001 ; spec.parallelism=10000"#,
            &[WARNING],
        ),
    ]);
    base.warned_of_update(&[
        ("", r#"metadata.labels={"a":"b"}"#, &[]),
        ("", "spec.parallelism=2", &[WARNING]),
    ]);
}

#[test]
fn cron_jobs() {
    const OF_JOB: &str =
        r#"spec.jobTemplate.spec.template.spec.imagePullSecrets[0].name: invalid empty name """#;
    const ZONE: &str = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
    let base = Base {
        resource: "cronjobs.batch",
        object: json!({
            "metadata": {"name": "web"},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template("Never")}}},
        }),
    };
    base.warned(&[
        ("", &[OF_JOB]),
        (r#"metadata.name="web.a""#, &[NAME, OF_JOB]),
    ]);
    base.warned_of_update(&[
        ("", r#"metadata.labels={"a":"b"}"#, &[]),
        ("", "spec.suspend=true", &[OF_JOB]),
        (
            r#"spec.schedule="TZ=UTC * * * * *""#,
            r#"metadata.labels={"a":"b"}"#,
            &[ZONE],
        ),
    ]);
}
