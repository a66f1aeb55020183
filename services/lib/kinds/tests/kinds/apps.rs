//! Deployments and ReplicaSets.

use serde_json::json;

use crate::table::Base;

fn of(resource: &'static str) -> Base {
    Base {
        resource,
        object: json!({
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "nginx"}]},
                },
            },
        }),
    }
}

#[test]
fn selectors_and_templates() {
    let labels = "Invalid spec.template.metadata.labels";
    for resource in ["deployments.apps", "replicasets.apps"] {
        of(resource)
            .created(&[
                ("", ""),
                (r#"metadata.name="Web""#, "Invalid metadata.name"),
                ("spec.replicas=0", ""),
                ("spec.replicas=-1", "Invalid spec.replicas"),
                ("spec.minReadySeconds=-1", "Invalid spec.minReadySeconds"),
                ("spec.selector=null", "Required spec.selector, Invalid spec.template.metadata.labels"),
                ("spec.selector={}", "Invalid spec.selector"),
                (r#"spec.selector={"matchLabels":{"app":"other"}}"#, labels),
                (r#"spec.selector={"matchExpressions":[{"key":"app","operator":"In","values":["web","log"]}]}"#, ""),
                (
                    r#"spec.selector={"matchExpressions":[{"key":"app","operator":"Like"}]}"#,
                    "Invalid spec.selector.matchExpressions[0].operator, Invalid spec.selector",
                ),
                (
                    r#"spec.selector={"matchExpressions":[{"key":"app","operator":"In"}]}"#,
                    "Required spec.selector.matchExpressions[0].values, Invalid spec.selector",
                ),
                ("metadata.name=null", "Required metadata.name"),
                (r#"metadata.namespace="other""#, "BadRequest"),
                (r#"metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"b"}"#, "Invalid metadata.labels"),
                (r#"metadata.annotations={"NoUppercaseOrSpecialCharsLike=Equals":"b"}"#, "Invalid metadata.annotations"),
                ("spec.template=null", "Invalid spec.template.metadata.labels, Required spec.template.spec.containers"),
                ("spec.replicas=-1 ; spec.template=null", "Invalid spec.replicas, Invalid spec.template.metadata.labels, Required spec.template.spec.containers"),
                (r#"spec.selector=null ; spec.template.metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"b"}"#, "Required spec.selector, Invalid spec.template.metadata.labels, Invalid spec.template.labels"),
                (r#"spec.template.spec.hostNetwork=true ; spec.template.spec.containers[0].ports=[{"containerPort":12345}]"#, ""),
                (r#"spec.template.spec.restartPolicy="OnFailure""#, "NotSupported spec.template.spec.restartPolicy"),
                (r#"spec.replicas=2 ; spec.template.spec.volumes=[{"name":"pd","gcePersistentDisk":{"pdName":"my-PD","fsType":"ext4","partition":1}}]"#, ""),
                (r#"spec.selector={"matchExpressions":[{"key":"-app","operator":"In","values":["web"]}]}"#, "Invalid spec.selector.matchExpressions[0].key, Invalid spec.selector"),
                (r#"spec.selector={"matchExpressions":[{"key":"app","operator":"In","values":["-web"]}]}"#, "Invalid spec.selector.matchExpressions[0].values[0], Invalid spec.selector"),
                (r#"spec.selector={"matchLabels":{"NoUppercaseOrSpecialCharsLike=Equals":"b"}}"#, "Invalid spec.selector.matchLabels, Invalid spec.selector"),
                ("spec.template.metadata.labels=null", labels),
                (r#"spec.template.metadata.labels={"app":"web","a b":"c"}"#, "Invalid spec.template.labels"),
                (r#"spec.template.metadata.annotations={"a b":"c"}"#, "Invalid spec.template.annotations"),
                (
                    r#"spec.template.metadata.annotations={"controller.kubernetes.io/pod-deletion-cost":"x"}"#,
                    "Invalid spec.template.annotations[controller.kubernetes.io/pod-deletion-cost]",
                ),
                (r#"spec.template.spec.restartPolicy="Never""#, "NotSupported spec.template.spec.restartPolicy"),
                ("spec.template.spec.activeDeadlineSeconds=5", "Forbidden spec.template.spec.activeDeadlineSeconds"),
                (
                    r#"spec.template.spec.ephemeralContainers=[{"name":"debug","image":"nginx"}]"#,
                    "Forbidden spec.template.spec.ephemeralContainers",
                ),
                ("spec.template.spec.containers=[]", "Required spec.template.spec.containers"),
                (r#"spec.template.spec.containers[0].image="""#, "Required spec.template.spec.containers[0].image"),
                (
                    r#"spec.template.spec.overhead={"cpu":"-1"}"#,
                    "Invalid spec.template.spec.overhead.limits[cpu]",
                ),
                (
                    r#"spec.template.spec.overhead={"my.org":"10m"}"#,
                    "Invalid spec.template.spec.overhead.limits[my.org], Invalid spec.template.spec.overhead.limits[my.org]",
                ),
                (r#"spec.template.spec.overhead={"cpu":"10","memory":"10G"}"#, ""),
                (r#"spec.template.spec.serviceAccountName="invalidName""#, "Invalid spec.template.spec.serviceAccountName"),
                (r#"spec.template.spec.priorityClassName="InvalidName""#, "Invalid spec.template.spec.priorityClassName"),
                (r#"spec.template.spec.runtimeClassName="invalid/sandbox""#, "Invalid spec.template.spec.runtimeClassName"),
                (r#"spec.template.spec.runtimeClassName="valid-sandbox""#, ""),
                (
                    r#"spec.template.spec.hostNetwork=true ; spec.template.spec.containers[0].ports=[{"containerPort":80,"hostPort":81}]"#,
                    "Invalid spec.template.spec.containers[0].ports[0].hostPort",
                ),
                (
                    r#"spec.template.metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/web":"unconfined"} ; spec.template.spec.containers[0].securityContext={"seccompProfile":{"type":"RuntimeDefault"}}"#,
                    "Forbidden spec.template.spec.containers[0].securityContext.seccompProfile.type",
                ),
                (
                    r#"spec.template.metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"runtime/default"} ; spec.template.spec.securityContext={"seccompProfile":{"type":"Unconfined"}}"#,
                    "Forbidden spec.template.spec.securityContext.seccompProfile.type",
                ),
                (
                    r#"spec.template.spec.initContainers=[{"name":"a","image":"b","securityContext":{"seccompProfile":{"type":"RuntimeDefault"}}}] ; spec.template.metadata.annotations={"container.seccomp.security.alpha.kubernetes.io/a":"unconfined"}"#,
                    "Forbidden spec.template.spec.initContainers[0].securityContext.seccompProfile.type",
                ),
                (r#"spec.template.spec.volumes=[{"name":"a","image":{"pullPolicy":"IfNotPresent"}}]"#, ""),
                (r#"spec.template.spec.containers[0].image=" ""#, ""),
                // Validated for Pods only.
                (r#"spec.template.spec.containers[0].image=" nginx""#, ""),
                ("spec.template.spec.terminationGracePeriodSeconds=-1", ""),
                (r#"spec.template.spec.serviceAccountName="nobody""#, ""),
                (r#"spec.template.spec.priorityClassName="nobody-defined-this""#, ""),
                (r#"spec.template.spec.preemptionPolicy="Never""#, ""),
                (r#"spec.template.spec.preemptionPolicy="Sometimes""#, "NotSupported spec.template.spec.preemptionPolicy"),
            ]);
        of(resource)
            .updated(&[
                ("", "spec.replicas=5", ""),
                ("", r#"spec.selector={"matchLabels":{"NoUppercaseOrSpecialCharsLike=Equals":"b"}}"#, "Invalid spec.selector.matchLabels, Invalid spec.selector, Invalid spec.selector"),
                ("", r#"spec.template.metadata.labels={"NoUppercaseOrSpecialCharsLike=Equals":"b"} ; spec.template.spec.containers=[]"#, "Invalid spec.template.labels, Invalid spec.template.metadata.labels, Required spec.template.spec.containers"),
                ("", r#"spec.replicas=2 ; spec.template.spec.volumes=[{"name":"pd","gcePersistentDisk":{"pdName":"my-PD","fsType":"ext4","partition":1}}]"#, ""),
                ("", r#"metadata.name="other""#, "BadRequest"),
                ("", "spec.replicas=-5", "Invalid spec.replicas"),
                (
                    "",
                    r#"spec.selector={"matchLabels":{"app":"web","a":"b"}} ; spec.template.metadata.labels={"app":"web","a":"b"}"#,
                    "Invalid spec.selector",
                ),
                ("", r#"spec.template.metadata.labels={"app":"other"}"#, labels),
                ("", r#"spec.template.spec.containers[0].image="nginx:2""#, ""),
            ]);
    }
}

#[test]
fn rollouts() {
    let down = "Invalid spec.strategy.rollingUpdate.maxUnavailable";
    let up = "Invalid spec.strategy.rollingUpdate.maxSurge";
    of("deployments.apps").created(&[
        (r#"spec.strategy={"type":"Recreate"}"#, ""),
        (
            r#"spec.strategy={"type":"Blue"}"#,
            "NotSupported spec.strategy",
        ),
        (
            r#"spec.strategy={"type":"Recreate","rollingUpdate":{}}"#,
            "Forbidden spec.strategy.rollingUpdate",
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"150%","maxUnavailable":0}}"#,
            "",
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}}"#,
            down,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxUnavailable":"110%"}}"#,
            down,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxUnavailable":-1}}"#,
            down,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"a lot"}}"#,
            up,
        ),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"1"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"-1%"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"0%"}}"#, ""),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"00000%"}}"#,
            "",
        ),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"01%"}}"#, ""),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"99%"}}"#, ""),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"101%"}}"#, ""),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"99999999999%"}}"#,
            "",
        ),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":""}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"0"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"100"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"0.0%"}}"#, up),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"99.9%"}}"#,
            up,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"hundred"}}"#,
            up,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"20Percent"}}"#,
            up,
        ),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":" 1%"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"1% "}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"-0%"}}"#, up),
        (r#"spec.strategy={"rollingUpdate":{"maxSurge":"+1%"}}"#, up),
        (
            r#"spec.strategy={"rollingUpdate":{"maxUnavailable":"99999999999%"}}"#,
            down,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"1","maxUnavailable":0}}"#,
            up,
        ),
        (
            r#"spec.strategy={"rollingUpdate":{"maxSurge":"0%","maxUnavailable":0}}"#,
            down,
        ),
        (
            "spec.progressDeadlineSeconds=600 ; spec.minReadySeconds=600",
            "Invalid spec.progressDeadlineSeconds",
        ),
        ("spec.revisionHistoryLimit=0", ""),
        (
            "spec.revisionHistoryLimit=-1",
            "Invalid spec.revisionHistoryLimit",
        ),
        (
            "spec.progressDeadlineSeconds=-1",
            "Invalid spec.progressDeadlineSeconds, Invalid spec.progressDeadlineSeconds",
        ),
        (
            "spec.progressDeadlineSeconds=10 ; spec.minReadySeconds=10",
            "Invalid spec.progressDeadlineSeconds",
        ),
        (
            "spec.progressDeadlineSeconds=11 ; spec.minReadySeconds=10",
            "",
        ),
    ]);
}
