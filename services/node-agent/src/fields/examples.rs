//! An example of each field and value that has a row of its own.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use super::*;

/// The rows of a table that find something set in an object.
fn set<T: DeserializeOwned>(rows: &[Row<T>], json: &str) -> Vec<&'static str> {
    let object = serde_json::from_str(json).unwrap();
    let set = rows.iter().filter(|row| (row.is_set)(&object));
    set.map(|row| row.name).collect()
}

/// Every row that not all runtimes obey finds its own field or value, no other row does, and none finds the second value.
fn each_row_finds_its_field<T: DeserializeOwned>(rows: &[Row<T>], examples: &[[&str; 3]]) {
    for &[name, value, other] in examples {
        assert_eq!(set(rows, value), [name], "{value}");
        assert_eq!(set(rows, other), [""; 0], "{other}");
    }
    let obeyed = |row: &&Row<T>| [row.docker, row.process] == [Support::Obeyed; 2];
    let told = rows.iter().filter(|row| !obeyed(row)).map(|row| row.name);
    let examples = examples.iter().map(|[name, ..]| *name);
    assert_eq!(told.collect::<BTreeSet<_>>(), examples.collect());
}

#[test]
fn a_field_of_a_pod_is_found_where_it_is_set() {
    each_row_finds_its_field(
        pod::POD,
        &[
            ["hostname", r#"{"hostname":"a"}"#, "{}"],
            ["hostNetwork", r#"{"hostNetwork":true}"#, "{}"],
            ["hostPID", r#"{"hostPID":true}"#, "{}"],
            ["hostIPC", r#"{"hostIPC":true}"#, "{}"],
            [
                "shareProcessNamespace",
                r#"{"shareProcessNamespace":true}"#,
                r#"{"shareProcessNamespace":false}"#,
            ],
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
                "ephemeralContainers",
                r#"{"ephemeralContainers":[{}]}"#,
                r#"{"ephemeralContainers":[]}"#,
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
                "os",
                r#"{"os":{"name":"windows"}}"#,
                r#"{"os":{"name":"linux"}}"#,
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

/// The examples of the profiles that a Pod's security context and a container's have in common.
const PROFILES: [[&str; 3]; 7] = [
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
fn a_field_of_a_security_context_is_found_where_it_is_set() {
    let of_pods = [
        [
            "supplementalGroupsPolicy[Strict]",
            r#"{"supplementalGroupsPolicy":"Strict"}"#,
            r#"{"supplementalGroupsPolicy":"Merge"}"#,
        ],
        [
            "sysctls",
            r#"{"sysctls":[{"name":"a","value":"b"}]}"#,
            r#"{"sysctls":[]}"#,
        ],
        ["windowsOptions", r#"{"windowsOptions":{}}"#, "{}"],
        [
            "seLinuxChangePolicy",
            r#"{"seLinuxChangePolicy":"Recursive"}"#,
            "{}",
        ],
    ];
    each_row_finds_its_field(pod::SECURITY, &[&of_pods[..], &PROFILES].concat());
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
        ["windowsOptions", r#"{"windowsOptions":{}}"#, "{}"],
    ];
    each_row_finds_its_field(
        container::SECURITY,
        &[&of_containers[..], &PROFILES].concat(),
    );
}

#[test]
fn a_field_of_a_container_is_found_where_it_is_set() {
    each_row_finds_its_field(
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
                r#"{"volumeMounts":[{"name":"a"}]}"#,
                r#"{"volumeMounts":[]}"#,
            ],
            [
                "volumeDevices",
                r#"{"volumeDevices":[{"name":"a"}]}"#,
                r#"{"volumeDevices":[]}"#,
            ],
            ["livenessProbe", r#"{"livenessProbe":{}}"#, "{}"],
            ["readinessProbe", r#"{"readinessProbe":{}}"#, "{}"],
            ["startupProbe", r#"{"startupProbe":{}}"#, "{}"],
            ["lifecycle", r#"{"lifecycle":{}}"#, "{}"],
            [
                "terminationMessagePath",
                r#"{"terminationMessagePath":"/log"}"#,
                r#"{"terminationMessagePath":"/dev/termination-log"}"#,
            ],
            [
                "terminationMessagePolicy",
                r#"{"terminationMessagePolicy":"FallbackToLogsOnError"}"#,
                r#"{"terminationMessagePolicy":"File"}"#,
            ],
            ["stdin", r#"{"stdin":true}"#, "{}"],
            ["stdinOnce", r#"{"stdinOnce":true}"#, "{}"],
            ["tty", r#"{"tty":true}"#, "{}"],
            [
                "restartPolicyRules",
                r#"{"restartPolicyRules":[{}]}"#,
                r#"{"restartPolicyRules":[]}"#,
            ],
        ],
    );
    each_row_finds_its_field(
        container::MAIN,
        &[["restartPolicy", r#"{"restartPolicy":"Always"}"#, "{}"]],
    );
    each_row_finds_its_field(
        container::MOUNT,
        &[
            [
                "mountPropagation",
                r#"{"mountPropagation":"Bidirectional"}"#,
                r#"{"mountPropagation":"None"}"#,
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
