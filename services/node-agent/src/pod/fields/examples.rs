//! An example of each field and value that has a row.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use setpoint_proto::core::{PodSecurityContext, SecurityContext};

use super::*;

/// Returns the rows of a table that match an object.
fn set<T: DeserializeOwned>(rows: &[Row<T>], json: &str) -> Vec<&'static str> {
    let object = serde_json::from_str(json).unwrap();
    let set = rows.iter().filter(|row| (row.is_set)(&object));
    set.map(|row| row.name).collect()
}

/// Asserts that every row that some runtime does not support matches its own example, that no other row does, and that
/// none matches the second value.
fn each_row_matches_its_field<T: DeserializeOwned>(rows: &[Row<T>], examples: &[[&str; 3]]) {
    for &[name, value, other] in examples {
        assert_eq!(set(rows, value), [name], "{value}");
        assert_eq!(set(rows, other), [""; 0], "{other}");
    }
    let supported = |row: &&Row<T>| [row.docker, row.process] == [Support::Supported; 2];
    let names = rows
        .iter()
        .filter(|row| !supported(row))
        .map(|row| row.name);
    let examples = examples.iter().map(|[name, ..]| *name);
    assert_eq!(names.collect::<BTreeSet<_>>(), examples.collect());
}

#[test]
fn rows_of_a_pod_match_their_fields() {
    each_row_matches_its_field(
        pod::POD,
        &[
            ["hostname", r#"{"hostname":"a"}"#, "{}"],
            ["hostNetwork", r#"{"hostNetwork":true}"#, "{}"],
            ["hostPID", r#"{"hostPID":true}"#, "{}"],
            ["hostIPC", r#"{"hostIPC":true}"#, "{}"],
            [
                "dnsPolicy[None]",
                r#"{"dnsPolicy":"None"}"#,
                r#"{"dnsPolicy":"Default"}"#,
            ],
            ["dnsConfig", r#"{"dnsConfig":{}}"#, "{}"],
            [
                "imagePullSecrets",
                r#"{"imagePullSecrets":[{"name":"a"}]}"#,
                r#"{"imagePullSecrets":[]}"#,
            ],
            ["subdomain", r#"{"subdomain":"a"}"#, "{}"],
            [
                "hostAliases",
                r#"{"hostAliases":[{"ip":"10.0.0.1"}]}"#,
                r#"{"hostAliases":[]}"#,
            ],
            [
                "setHostnameAsFQDN",
                r#"{"setHostnameAsFQDN":true}"#,
                r#"{"setHostnameAsFQDN":false}"#,
            ],
            ["hostnameOverride", r#"{"hostnameOverride":"a"}"#, "{}"],
            [
                "automountServiceAccountToken",
                r#"{"automountServiceAccountToken":true}"#,
                r#"{"automountServiceAccountToken":false}"#,
            ],
            [
                "resources",
                r#"{"resources":{"limits":{"cpu":"1"}}}"#,
                r#"{"resources":{"requests":{"cpu":"1"}}}"#,
            ],
            [
                "hostUsers",
                r#"{"hostUsers":false}"#,
                r#"{"hostUsers":true}"#,
            ],
            [
                "runtimeClassName",
                r#"{"runtimeClassName":"a"}"#,
                r#"{"runtimeClassName":""}"#,
            ],
            [
                "resourceClaims",
                r#"{"resourceClaims":[{"name":"a"}]}"#,
                r#"{"resourceClaims":[]}"#,
            ],
        ],
    );
}

/// Examples of the fields that both kinds of security context have.
const SHARED: [[&str; 3]; 8] = [
    ["windowsOptions", r#"{"windowsOptions":{}}"#, "{}"],
    [
        "seLinuxOptions",
        r#"{"seLinuxOptions":{"level":"s0"}}"#,
        r#"{"seLinuxOptions":{}}"#,
    ],
    [
        "seccompProfile[RuntimeDefault]",
        r#"{"seccompProfile":{"type":"RuntimeDefault"}}"#,
        "{}",
    ],
    [
        "seccompProfile[Unconfined]",
        r#"{"seccompProfile":{"type":"Unconfined"}}"#,
        "{}",
    ],
    [
        "seccompProfile[Localhost]",
        r#"{"seccompProfile":{"type":"Localhost"}}"#,
        "{}",
    ],
    [
        "appArmorProfile[RuntimeDefault]",
        r#"{"appArmorProfile":{"type":"RuntimeDefault"}}"#,
        "{}",
    ],
    [
        "appArmorProfile[Unconfined]",
        r#"{"appArmorProfile":{"type":"Unconfined"}}"#,
        "{}",
    ],
    [
        "appArmorProfile[Localhost]",
        r#"{"appArmorProfile":{"type":"Localhost"}}"#,
        "{}",
    ],
];

#[test]
fn rows_of_security_contexts_match_their_fields() {
    let of_pods = [
        [
            "supplementalGroupsPolicy[Strict]",
            r#"{"supplementalGroupsPolicy":"Strict"}"#,
            r#"{"supplementalGroupsPolicy":"Merge"}"#,
        ],
        [
            "sysctls[net]",
            r#"{"sysctls":[{"name":"net.ipv4.tcp_rmem","value":"b"}]}"#,
            r#"{"sysctls":[]}"#,
        ],
        [
            "sysctls[kernel]",
            r#"{"sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"}]}"#,
            r#"{"sysctls":[]}"#,
        ],
        [
            "seLinuxChangePolicy",
            r#"{"seLinuxChangePolicy":"Recursive"}"#,
            "{}",
        ],
    ];
    each_row_matches_its_field(security::POD, &of_pods);
    let of_containers = [
        [
            "capabilities",
            r#"{"capabilities":{"add":["CHOWN"]}}"#,
            r#"{"capabilities":{}}"#,
        ],
        ["capabilities", r#"{"capabilities":{"drop":["ALL"]}}"#, "{}"],
        [
            "privileged",
            r#"{"privileged":true}"#,
            r#"{"privileged":false}"#,
        ],
        [
            "readOnlyRootFilesystem",
            r#"{"readOnlyRootFilesystem":true}"#,
            r#"{"readOnlyRootFilesystem":false}"#,
        ],
        [
            "procMount",
            r#"{"procMount":"Unmasked"}"#,
            r#"{"procMount":"Default"}"#,
        ],
    ];
    each_row_matches_its_field(security::CONTAINER, &of_containers);
    each_row_matches_its_field(&security::shared::<PodSecurityContext>(), &SHARED);
    each_row_matches_its_field(&security::shared::<SecurityContext>(), &SHARED);
}

#[test]
fn rows_of_a_container_match_their_fields() {
    each_row_matches_its_field(
        container::CONTAINER,
        &[
            [
                "ports.hostPort",
                r#"{"ports":[{"containerPort":1,"hostPort":1}]}"#,
                r#"{"ports":[{"containerPort":1}]}"#,
            ],
            [
                "resources.limits",
                r#"{"resources":{"limits":{"cpu":"1"}}}"#,
                r#"{"resources":{"requests":{"cpu":"1"}}}"#,
            ],
            [
                "resources.claims",
                r#"{"resources":{"claims":[{"name":"a"}]}}"#,
                r#"{"resources":{}}"#,
            ],
            [
                "volumeMounts",
                r#"{"volumeMounts":[{"name":"kube-api-access-a","mountPath":"/a"}]}"#,
                r#"{"volumeMounts":[]}"#,
            ],
            [
                "volumeDevices",
                r#"{"volumeDevices":[{"name":"a"}]}"#,
                r#"{"volumeDevices":[]}"#,
            ],
            [
                "lifecycle.stopSignal",
                r#"{"lifecycle":{"stopSignal":"SIGUSR1"}}"#,
                r#"{"lifecycle":{"preStop":{"sleep":{"seconds":1}}}}"#,
            ],
            [
                "terminationMessagePath",
                r#"{"terminationMessagePath":"/log"}"#,
                r#"{"terminationMessagePath":"/dev/termination-log"}"#,
            ],
            ["stdin", r#"{"stdin":true}"#, "{}"],
            ["stdinOnce", r#"{"stdinOnce":true}"#, "{}"],
            ["tty", r#"{"tty":true}"#, "{}"],
        ],
    );
    each_row_matches_its_field(
        container::MOUNT,
        &[
            [
                "mountPropagation[HostToContainer]",
                r#"{"mountPropagation":"HostToContainer"}"#,
                r#"{"mountPropagation":"None"}"#,
            ],
            [
                "mountPropagation[Bidirectional]",
                r#"{"mountPropagation":"Bidirectional"}"#,
                "{}",
            ],
            [
                "recursiveReadOnly[Enabled]",
                r#"{"recursiveReadOnly":"Enabled"}"#,
                r#"{"recursiveReadOnly":"IfPossible"}"#,
            ],
            [
                "bindMountOptions",
                r#"{"bindMountOptions":["noexec"]}"#,
                r#"{"bindMountOptions":[]}"#,
            ],
        ],
    );
}
