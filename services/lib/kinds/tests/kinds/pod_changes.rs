//! Changes of Pods, on nodes and before they are scheduled.

use crate::pod::pod;

const TERM: &str = r#"spec.schedulingGates=[{"name":"baz"}] ; spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"expr","operator":"In","values":["foo"]}],"matchFields":[{"key":"metadata.name","operator":"In","values":["foo"]}]}]}}}"#;
const PREFERENCE: &str = r#"spec.schedulingGates=[{"name":"baz"}] ; spec.affinity={"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"expr","operator":"In","values":["foo"]}]}}]}}"#;
const GATED: &str = r#"spec.schedulingGates=[{"name":"baz"}]"#;

#[test]
fn of_containers() {
    let resources = r#"spec.containers[0].resources={"limits":{"cpu":"100m","memory":"100Mi"},"requests":{"cpu":"100m","memory":"100Mi"}}"#;
    pod()
        .updated(&[
            ("", r#"metadata.annotations={"foo":"bar"}"#, ""),
            ("", "spec.containers=[{\"name\":\"web\",\"image\":\"nginx\"}]", "Forbidden spec.containers"),
            ("", r#"spec.initContainers[0].image="""#, "Required spec.initContainers[0].image"),
            ("", r#"spec.ephemeralContainers=[{"name":"ephemeral","image":"busybox"}]"#, "Forbidden spec"),
            (resources, r#"spec.containers[0].resources.limits.cpu="200m""#, "Forbidden spec"),
            (resources, r#"spec.containers[0].resources.requests.memory="50Mi""#, "Forbidden spec"),
            (resources, "spec.containers[0].resources={}", "Forbidden spec"),
            (resources, r#"spec.containers[0].resources.limits["ephemeral-storage"]="1Gi" ; spec.containers[0].resources.requests["ephemeral-storage"]="1Gi""#, "Forbidden spec"),
            ("", r#"spec.resources={"limits":{"cpu":"100m"}}"#, "Forbidden spec"),
            (r#"spec.containers[0].ports=[{"containerPort":80,"hostPort":8000}]"#, "spec.containers[0].ports[0].hostPort=8080", "Forbidden spec"),
            (
                r#"spec.containers[0].restartPolicy="Never" ; spec.containers[0].restartPolicyRules=[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[43]}}]"#,
                "spec.containers[0].restartPolicyRules[0].exitCodes.values=[42]",
                "Forbidden spec",
            ),
            (
                "",
                r#"spec.initContainers[0].resizePolicy=[{"resourceName":"cpu","restartPolicy":"RestartContainer"}]"#,
                "Invalid spec.initContainers[0].resizePolicy[0].restartPolicy, Forbidden spec",
            ),
        ]);
}

#[test]
fn of_the_spec() {
    let tolerating = r#"spec.nodeName="node1" ; spec.tolerations=[{"key":"key1","value":"value1","operator":"Equal","effect":"NoExecute","tolerationSeconds":10}]"#;
    let mirror =
        r#"spec.nodeName="foo" ; metadata.annotations={"kubernetes.io/config.mirror":"bar"}"#;
    let annotation = "Forbidden metadata.annotations[kubernetes.io/config.mirror]";
    pod()
        .updated(&[
            ("spec.activeDeadlineSeconds=30", r#"metadata.labels={"a":"b"}"#, ""),
            ("", "spec.activeDeadlineSeconds=-30", "Invalid spec.activeDeadlineSeconds"),
            ("spec.activeDeadlineSeconds=30", "spec.activeDeadlineSeconds=-30", "Invalid spec.activeDeadlineSeconds"),
            ("spec.activeDeadlineSeconds=30", "spec.activeDeadlineSeconds=0", "Invalid spec.activeDeadlineSeconds"),
            ("", "spec.activeDeadlineSeconds=0", "Invalid spec.activeDeadlineSeconds"),
            ("", r#"spec.securityContext={"fsGroupChangePolicy":"OnRootMismatch"}"#, "Forbidden spec"),
            (tolerating, "spec.tolerations[0].tolerationSeconds=null ; spec.tolerations[0].value=\"value2\"", "Forbidden spec.tolerations"),
            (tolerating, "spec.tolerations[0].tolerationSeconds=20", ""),
            (tolerating, r#"spec.tolerations[0].tolerationSeconds=20 ; spec.tolerations[1]={"key":"key2","value":"value2","operator":"Equal","effect":"NoExecute","tolerationSeconds":30}"#, ""),
            (tolerating, r#"spec.tolerations[1]={"key":"key2","value":"value2","operator":"Equal","effect":"NoSchedule","tolerationSeconds":30}"#, "Invalid spec.tolerations[1].effect"),
            ("", r#"spec.nodeName="foo""#, "Forbidden spec"),
            (r#"spec.nodeName="foo""#, r#"metadata.annotations={"kubernetes.io/config.mirror":""}"#, annotation),
            (mirror, "metadata.annotations=null", annotation),
            (mirror, r#"metadata.annotations={"kubernetes.io/config.mirror":"foo"}"#, annotation),
            (r#"spec.priorityClassName="system-node-critical""#, r#"spec.priorityClassName="system-cluster-critical""#, "Forbidden spec"),
            ("", "spec.terminationGracePeriodSeconds=0", "Forbidden spec"),
            (r#"spec.os={"name":"linux"}"#, r#"spec.os={"name":"windows"}"#, "Forbidden spec"),
            (r#"spec.os={"name":"windows"}"#, r#"spec.os={"name":"linux"}"#, "Forbidden spec"),
            (
                r#"spec.os={"name":"linux"} ; spec.securityContext={"seLinuxOptions":{"role":"dummy"}}"#,
                r#"spec.os={"name":"windows"}"#,
                "Forbidden spec.securityContext.seLinuxOptions, Forbidden spec",
            ),
            ("", r#"spec.os={"name":"dummy"}"#, "NotSupported spec.os, Forbidden spec"),
            (r#"spec.schedulingGates=[{"name":"foo"}]"#, r#"spec.schedulingGates=[{"name":"bar"}]"#, "Forbidden spec.schedulingGates[0].name"),
            (r#"spec.schedulingGates=[{"name":"foo"},{"name":"bar"}]"#, r#"spec.schedulingGates=[{"name":"baz"}]"#, "Forbidden spec.schedulingGates[0].name"),
            (r#"spec.schedulingGates=[{"name":"foo"}]"#, "spec.schedulingGates=[]", ""),
        ]);
}

#[test]
fn of_gated_pods() {
    let terms = "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let term = "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]";
    let selecting = r#"spec.schedulingGates=[{"name":"baz"}] ; spec.nodeSelector={"foo":"bar"}"#;
    pod()
        .updated(&[
            (GATED, r#"spec.nodeSelector={"foo":"bar"}"#, ""),
            (selecting, "spec.nodeSelector=null", "Invalid spec.nodeSelector"),
            (selecting, r#"spec.nodeSelector={"foo":"new value"}"#, "Invalid spec.nodeSelector, Invalid spec.nodeSelector"),
            (selecting, r#"spec.nodeSelector={"foo":"other"}"#, "Invalid spec.nodeSelector"),
            (selecting, r#"spec.schedulingGates=[] ; spec.nodeSelector={"foo":"bar","foo2":"bar2"}"#, ""),
            (r#"spec.nodeSelector={"foo":"bar"}"#, "spec.nodeSelector=null", "Forbidden spec"),
            (TERM, r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[1]={"key":"metadata.name","operator":"In","values":["bar"]}"#, ""),
            (TERM, r#"spec.schedulingGates=[] ; spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1]={"key":"expr2","operator":"Exists"}"#, ""),
            (TERM, r#"spec.affinity={"nodeAffinity":{}}"#, terms),
            (TERM, "spec.affinity={}", terms),
            (TERM, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions=[]", term),
            (TERM, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields=[]", term),
            (TERM, r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values=["bar"]"#, term),
            (TERM, r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values=["bar"]"#, term),
            (TERM, r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1]={"matchExpressions":[{"key":"expr","operator":"In","values":["foo2"]}]}"#, terms),
            (
                r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"expr","operator":"In","values":["foo"]}]}]}}}"#,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1]={"key":"expr2","operator":"Exists"}"#,
                "Forbidden spec",
            ),
            (
                r#"spec.schedulingGates=[{"name":"baz"}] ; spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{}]}}}"#,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions=[{"key":"expr","operator":"Exists"}]"#,
                term,
            ),
            (PREFERENCE, r#"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values=["foo2"]"#, ""),
            (PREFERENCE, r#"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields=[{"key":"metadata.name","operator":"In","values":["bar"]}]"#, ""),
            (PREFERENCE, "spec.affinity=null", ""),
            (GATED, r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"expr","operator":"Exists"}]}]}},"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"foo"}]}}"#, "Forbidden spec"),
            (GATED, r#"spec.affinity={"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"foo"}]}}"#, "Forbidden spec"),
            (
                TERM,
                r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values=["-1"]"#,
                "Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0], Invalid spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
            ),
        ]);
}
