//! Pods.

use crate::pod::pod;

#[test]
fn names() {
    pod().warned(&[
        ("", &[]),
        (
            r#"metadata.name="web.a""#,
            &["metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"],
        ),
        (
            r#"metadata.name="a-name-of-more-than-sixty-three-characters-is-too-long-for-a-label""#,
            &["metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must be no more than 63 characters]"],
        ),
    ]);
}

#[test]
fn node_selectors() {
    pod().warned(&[
        (
            r#"spec.nodeSelector={"beta.kubernetes.io/arch":"amd64","kubernetes.io/os":"linux"}"#,
            &[r#"spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead"#],
        ),
        (
            r#"spec.nodeSelector={"beta.kubernetes.io/os":"linux"}"#,
            &[r#"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead"#],
        ),
        (
            r#"spec.nodeSelector={"failure-domain.beta.kubernetes.io/region":"a"}"#,
            &[r#"spec.nodeSelector[failure-domain.beta.kubernetes.io/region]: deprecated since v1.17; use "topology.kubernetes.io/region" instead"#],
        ),
        (
            r#"spec.nodeSelector={"failure-domain.beta.kubernetes.io/zone":"a"}"#,
            &[r#"spec.nodeSelector[failure-domain.beta.kubernetes.io/zone]: deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#],
        ),
        (
            r#"spec.nodeSelector={"beta.kubernetes.io/instance-type":"a"}"#,
            &[r#"spec.nodeSelector[beta.kubernetes.io/instance-type]: deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#],
        ),
        (
            r#"spec.nodeSelector={"app.kubernetes.io/created-by":"a"}"#,
            &["spec.nodeSelector[app.kubernetes.io/created-by]: deprecated since v1.9"],
        ),
        (
            r#"spec.nodeSelector={"scheduler.alpha.kubernetes.io/preferAvoidPods":"a"}"#,
            &["spec.nodeSelector[scheduler.alpha.kubernetes.io/preferAvoidPods]: deprecated since v1.22; use Taints and Tolerations instead"],
        ),
        (
            r#"spec.nodeSelector={"node-role.kubernetes.io/master":""}"#,
            &[r#"spec.nodeSelector[node-role.kubernetes.io/master]: use "node-role.kubernetes.io/control-plane" instead"#],
        ),
    ]);
}

#[test]
fn affinity() {
    pod().warned(&[
        (
            r#"spec.affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"foo","operator":"Exists"},{"key":"beta.kubernetes.io/os","operator":"Exists"}]}]}}}"#,
            &[r#"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[1].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead"#],
        ),
        (
            r#"spec.affinity={"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"beta.kubernetes.io/arch","operator":"In","values":["-1"]}]}}]}}"#,
            &[
                r#"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead"#,
                "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: -1 is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ],
        ),
        (
            r#"spec.affinity={"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a"}],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"a"}}]}}"#,
            &[
                "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod",
                "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        (
            r#"spec.affinity={"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"a","labelSelector":{}},{"topologyKey":"a"}],"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"podAffinityTerm":{"topologyKey":"a"}}]}}"#,
            &[
                "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].labelSelector: a null labelSelector results in matching no pod",
                "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
        (
            r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"beta.kubernetes.io/arch","whenUnsatisfiable":"DoNotSchedule"},{"maxSkew":1,"topologyKey":"a","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]"#,
            &[
                r#"spec.topologySpreadConstraints[0].topologyKey: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead"#,
                "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
            ],
        ),
    ]);
}

#[test]
fn annotations() {
    const CRITICAL: &str = r#"metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead"#;
    const SECCOMP: &str = r#"metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead"#;
    const OF_WEB: &str = r#"metadata.annotations[container.seccomp.security.alpha.kubernetes.io/web]: non-functional in v1.27+; use the "seccompProfile" field instead"#;
    const APP_ARMOR: &str = r#"metadata.annotations[container.apparmor.security.beta.kubernetes.io/web]: deprecated since v1.30; use the "appArmorProfile" field instead"#;
    pod().warned(&[
        (
            r#"metadata.annotations={"scheduler.alpha.kubernetes.io/critical-pod":"","a/b":""}"#,
            &[CRITICAL],
        ),
        (
            r#"metadata.annotations={"security.alpha.kubernetes.io/sysctls":"","security.alpha.kubernetes.io/unsafe-sysctls":""}"#,
            &[
                r#"metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead"#,
                r#"metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]: non-functional in v1.11+; use the "sysctls" field instead"#,
            ],
        ),
        (
            r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined","container.seccomp.security.alpha.kubernetes.io/web":"unconfined"}"#,
            &[SECCOMP, OF_WEB],
        ),
        (
            r#"metadata.annotations={"seccomp.security.alpha.kubernetes.io/pod":"unconfined","container.seccomp.security.alpha.kubernetes.io/web":"unconfined"} ; spec.securityContext={"seccompProfile":{"type":"Unconfined"}} ; spec.containers[0].securityContext={"seccompProfile":{"type":"Unconfined"}}"#,
            &[],
        ),
        (
            r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"localhost/a"}"#,
            &[APP_ARMOR],
        ),
        (
            r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"unconfined"} ; spec.containers[0].securityContext={"appArmorProfile":{"type":"Unconfined"}}"#,
            &[],
        ),
        (
            r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"runtime/default"} ; spec.securityContext={"appArmorProfile":{"type":"RuntimeDefault"}}"#,
            &[],
        ),
        (
            r#"metadata.annotations={"container.apparmor.security.beta.kubernetes.io/web":"unconfined"} ; spec.os={"name":"windows"}"#,
            &[],
        ),
    ]);
}

#[test]
fn lists() {
    pod().warned(&[
        (
            r#"spec.hostAliases=[{"ip":"1.1.1.1"},{"ip":"2.2.2.2"},{"ip":"1.1.1.1"}]"#,
            &[r#"spec.hostAliases[2].ip: duplicate ip "1.1.1.1""#],
        ),
        (
            r#"spec.hostAliases=[{"ip":"2001:0db8::1"}]"#,
            &[r#"spec.hostAliases[0].ip: IPv6 address "2001:0db8::1" should be in RFC 5952 canonical format ("2001:db8::1")"#],
        ),
        (
            r#"spec.dnsConfig={"nameservers":["1.2.3.4","fc00:00::1"]}"#,
            &[r#"spec.dnsConfig.nameservers[1]: IPv6 address "fc00:00::1" should be in RFC 5952 canonical format ("fc00::1")"#],
        ),
        (
            r#"spec.imagePullSecrets=[{"name":"a"},{"name":"b"},{"name":"a"}]"#,
            &[r#"spec.imagePullSecrets[2].name: duplicate name "a""#],
        ),
        (
            r#"spec.imagePullSecrets=[{"name":""}]"#,
            &[r#"spec.imagePullSecrets[0].name: invalid empty name """#],
        ),
        (
            // It has become 1.
            "spec.terminationGracePeriodSeconds=-1",
            &[],
        ),
    ]);
}

#[test]
fn containers() {
    pod().warned(&[
        (
            r#"spec.initContainers[0].resources={"limits":{"memory":"200m","ephemeral-storage":"1.5"},"requests":{"memory":"100m","ephemeral-storage":"1"}}"#,
            &[
                r#"spec.initContainers[0].resources.limits[memory]: fractional byte value "200m" is invalid, must be an integer"#,
                r#"spec.initContainers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer"#,
                r#"spec.initContainers[0].resources.limits[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer"#,
            ],
        ),
        (
            r#"spec.containers[1].resources={"limits":{"memory":"1Gi","cpu":"1500m"},"requests":{"memory":"0.5"}}"#,
            &[r#"spec.containers[1].resources.requests[memory]: fractional byte value "500m" is invalid, must be an integer"#],
        ),
        (
            r#"spec.overhead={"memory":"1500m","ephemeral-storage":"2.5","cpu":"0.5"}"#,
            &[
                r#"spec.overhead[memory]: fractional byte value "1500m" is invalid, must be an integer"#,
                r#"spec.overhead[ephemeral-storage]: fractional byte value "2500m" is invalid, must be an integer"#,
            ],
        ),
        (
            r#"spec.containers[0].env=[{"name":"A","value":"a"},{"name":"A","value":"b"}]"#,
            &[r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#],
        ),
        (
            r#"spec.containers[0].env=[{"name":"A","value":"a"},{"name":"A","value":"$(A)"}]"#,
            &[r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#],
        ),
        (
            r#"spec.containers[0].env=[{"name":"A","value":"a"},{"name":"A","value":"$(A)b"}]"#,
            &[],
        ),
        (
            r#"spec.containers[0].env=[{"name":"A","value":"a"},{"name":"A","valueFrom":{"secretKeyRef":{"name":"a","key":"a"}}}]"#,
            &[r#"spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply"#],
        ),
    ]);
}

#[test]
fn updates_have_none() {
    let change = r#"metadata.annotations={"scheduler.alpha.kubernetes.io/critical-pod":""}"#;
    pod().warned_of_update(&[("", change, &[])]);
}

#[test]
fn statuses() {
    let change = r#"status.podIP="2001:db8:0::1" ; status.podIPs=[{"ip":"2001:db8:0::1"}] ; status.hostIP="1.2.3.4" ; status.hostIPs=[{"ip":"1.2.3.4"},{"ip":"2001:DB8::2"}]"#;
    pod().warned_of_status(&[
        ("", "", &[]),
        (
            "",
            change,
            &[
                r#"status.podIPs[0].ip: IPv6 address "2001:db8:0::1" should be in RFC 5952 canonical format ("2001:db8::1")"#,
                r#"status.hostIPs[1].ip: IPv6 address "2001:DB8::2" should be in RFC 5952 canonical format ("2001:db8::2")"#,
            ],
        ),
    ]);
}
