//! The cases of the checks of `restricted`, which are also those of `baseline` that they do not override.

use serde_json::{Value, json};

use crate::baseline::{context, pod_context};
use crate::cases::{Case, container, pod};

pub fn cases() -> Vec<Case> {
    let mut all = vec![pod("allowPrivilegeEscalation", json!({}), &[])];
    all.extend(escalation());
    all.extend(capabilities());
    all.extend(volumes());
    all.extend(user());
    all.extend(seccomp());
    all.push(unrestricted());
    all
}

/// A Pod of Windows sets nothing of Linux.
fn windows() -> Value {
    let bare = |name: &str| json!([{ "name": name }]);
    json!({ "spec": {
        "os": { "name": "windows" },
        "securityContext": { "runAsNonRoot": true, "seccompProfile": null },
        "initContainers": null,
        "containers": bare("main"),
        "ephemeralContainers": null,
    } })
}

fn escalation() -> Vec<Case> {
    const VIOLATIONS: &[(i64, &str)] = &[(
        8,
        "allowPrivilegeEscalation != false (container \"NAME\" must set \
         securityContext.allowPrivilegeEscalation=false)",
    )];
    let with = |value: Value| context(json!({ "allowPrivilegeEscalation": value }));
    vec![
        container("allowPrivilegeEscalation", with(json!(true)), VIOLATIONS),
        container("allowPrivilegeEscalation", with(json!(null)), VIOLATIONS),
        pod(
            "allowPrivilegeEscalation",
            windows(),
            &[
                (
                    8,
                    "allowPrivilegeEscalation != false (container \"main\" must set \
                securityContext.allowPrivilegeEscalation=false)",
                ),
                (
                    19,
                    "allowPrivilegeEscalation != false (container \"main\" must set \
                securityContext.allowPrivilegeEscalation=false), seccompProfile (pod or container \"main\" must set \
                securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
                ),
                (
                    22,
                    "allowPrivilegeEscalation != false (container \"main\" must set \
                securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"main\" must \
                set securityContext.capabilities.drop=[\"ALL\"]), seccompProfile (pod or container \"main\" must set \
                securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
                ),
                (25, ""),
            ],
        ),
    ]
}

fn capabilities() -> Vec<Case> {
    let with = |capabilities: Value| context(json!({ "capabilities": capabilities }));
    let others = json!({ "add": ["NET_BIND_SERVICE", "CHOWN"], "drop": ["KILL"] });
    vec![
        container(
            "capabilities_restricted",
            with(json!({ "add": ["NET_BIND_SERVICE"] })),
            &[],
        ),
        container(
            "capabilities_restricted",
            with(json!(null)),
            &[(
                22,
                "unrestricted capabilities (container \"NAME\" must set securityContext.capabilities.drop=[\"ALL\"])",
            )],
        ),
        container(
            "capabilities_restricted",
            with(others),
            &[(
                22,
                "unrestricted capabilities (container \"NAME\" must set securityContext.capabilities.drop=[\"ALL\"]; \
             container \"NAME\" must not include \"CHOWN\" in securityContext.capabilities.add)",
            )],
        ),
        // Until `restricted` overrides it, the check of `baseline` says so.
        container(
            "capabilities_restricted",
            with(json!({ "add": ["NET_RAW"] })),
            &[
                (
                    0,
                    "non-default capabilities (container \"NAME\" must not include \"NET_RAW\" in \
                securityContext.capabilities.add)",
                ),
                (
                    22,
                    "unrestricted capabilities (container \"NAME\" must not include \"NET_RAW\" in \
                securityContext.capabilities.add)",
                ),
            ],
        ),
        pod(
            "capabilities_restricted",
            windows_without("capabilities"),
            &[
                (
                    22,
                    "unrestricted capabilities (container \"main\" must set securityContext.capabilities.drop=[\"ALL\"])",
                ),
                (25, ""),
            ],
        ),
        pod(
            "seccompProfile_restricted",
            windows_without("seccompProfile"),
            &[
                (
                    19,
                    "seccompProfile (pod or container \"main\" must set securityContext.seccompProfile.type to \
                \"RuntimeDefault\" or \"Localhost\")",
                ),
                (25, ""),
            ],
        ),
    ]
}

/// A Pod of Windows that violates one check only.
fn windows_without(field: &str) -> Value {
    let mut context = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    context[field] = Value::Null;
    let mut pod = windows();
    pod["spec"]["containers"][0]["securityContext"] = context;
    pod
}

fn volumes() -> Vec<Case> {
    let allowed = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "projected",
        "secret",
        "persistentVolumeClaim",
    ];
    let sources = allowed.iter().chain(&["ephemeral", "image"]);
    let allowed = sources.map(|source| json!({ "name": source, *source: minimal(source) }));
    let mut all = vec![pod(
        "restrictedVolumes",
        json!({ "spec": { "volumes": allowed.collect::<Vec<_>>() } }),
        &[],
    )];
    let both = json!([
        { "name": "files", "nfs": { "server": "a", "path": "/" } },
        { "name": "logs", "hostPath": { "path": "/var/log" } },
        { "name": "more", "nfs": { "server": "b", "path": "/" } },
        { "name": "none" },
    ]);
    all.push(pod("restrictedVolumes", json!({ "spec": { "volumes": both } }), &[(
        0,
        "restricted volume types (volumes \"files\", \"logs\", \"more\", \"none\" use restricted volume types \
         \"hostPath\", \"nfs\", \"unknown\")",
    )]));
    for (source, violations) in RESTRICTED {
        let volume = json!({ "name": "data", *source: minimal(source) });
        all.push(pod(
            "restrictedVolumes",
            json!({ "spec": { "volumes": [volume] } }),
            violations,
        ));
    }
    all
}

/// Returns the shortest volume source of a type.
fn minimal(source: &str) -> Value {
    match source {
        "csi" => json!({ "driver": "example.com" }),
        "persistentVolumeClaim" => json!({ "claimName": "data" }),
        _ => json!({}),
    }
}

macro_rules! restricted_volumes {
    ($($source:literal)*) => {
        &[$((
            $source,
            &[(
                0,
                concat!("restricted volume types (volume \"data\" uses restricted volume type \"", $source, "\")"),
            )],
        )),*]
    };
}

/// The types of volumes that are not allowed.
const RESTRICTED: &[(&str, &[(i64, &str)])] = restricted_volumes! {
    "hostPath" "gcePersistentDisk" "awsElasticBlockStore" "gitRepo" "nfs" "iscsi" "glusterfs" "rbd" "flexVolume"
    "cinder" "cephfs" "flocker" "fc" "azureFile" "vsphereVolume" "quobyte" "azureDisk" "photonPersistentDisk"
    "portworxVolume" "scaleIO" "storageos"
};

fn user() -> Vec<Case> {
    let mut own_users = pod_context(json!({ "runAsNonRoot": false, "runAsUser": 0 }));
    own_users["spec"]["hostUsers"] = false.into();
    let mut unmasked = json!({ "hostUsers": false });
    unmasked["containers"] = json!([{ "name": "main", "securityContext": {
        "procMount": "Unmasked", "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] },
    } }]);
    let unset = pod_context(json!({ "runAsNonRoot": null }));
    vec![
        pod(
            "runAsNonRoot",
            unset,
            &[(
                0,
                "runAsNonRoot != true (pod or containers \"init\", \"main\", \"debug\" must set \
             securityContext.runAsNonRoot=true)",
            )],
        ),
        pod(
            "runAsNonRoot",
            pod_context(json!({ "runAsNonRoot": false })),
            &[(
                0,
                "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
            )],
        ),
        container(
            "runAsNonRoot",
            context(json!({ "runAsNonRoot": false })),
            &[(
                0,
                "runAsNonRoot != true (container \"NAME\" must not set securityContext.runAsNonRoot=false)",
            )],
        ),
        container("runAsUser", context(json!({ "runAsUser": 1000 })), &[]),
        container(
            "runAsUser",
            context(json!({ "runAsUser": 0 })),
            &[(
                23,
                "runAsUser=0 (container \"NAME\" must not set runAsUser=0)",
            )],
        ),
        pod(
            "runAsUser",
            pod_context(json!({ "runAsUser": 0 })),
            &[(23, "runAsUser=0 (pod must not set runAsUser=0)")],
        ),
        pod(
            "runAsUser",
            own_users.clone(),
            &[
                (
                    0,
                    "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
                ),
                (
                    23,
                    "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod must \
                not set runAsUser=0)",
                ),
                (35, ""),
            ],
        ),
        pod(
            "runAsNonRoot",
            json!({ "spec": { "hostUsers": false, "securityContext": { "runAsNonRoot": false } } }),
            &[
                (
                    0,
                    "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
                ),
                (35, ""),
            ],
        ),
        // As before 1.35, `restricted` does not allow it to users of the Pod's own.
        pod(
            "procMount_restricted",
            json!({ "spec": unmasked }),
            &[
                (
                    0,
                    "procMount (container \"main\" must not set securityContext.procMount to \"Unmasked\")",
                ),
                (
                    35,
                    "procMount (container \"main\" must not set securityContext.procMount to \"Unmasked\")",
                ),
            ],
        ),
    ]
}

fn seccomp() -> Vec<Case> {
    let none = pod_context(json!({ "seccompProfile": null }));
    let mut some = none.clone();
    some["spec"]["initContainers"] = Value::Null;
    some["spec"]["ephemeralContainers"] = Value::Null;
    let capabilities = json!({ "drop": ["ALL"] });
    some["spec"]["containers"] = json!([{ "name": "main", "securityContext": {
        "allowPrivilegeEscalation": false, "capabilities": capabilities, "seccompProfile": { "type": "Localhost" },
    } }]);
    let unconfined = json!({ "seccompProfile": { "type": "Unconfined" } });
    vec![
        pod(
            "seccompProfile_restricted",
            none,
            &[(
                19,
                "seccompProfile (pod or containers \"init\", \"main\", \"debug\" must set \
             securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            )],
        ),
        pod("seccompProfile_restricted", some, &[]),
        container(
            "seccompProfile_restricted",
            context(unconfined),
            &[(
                19,
                "seccompProfile (container \"NAME\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
            )],
        ),
    ]
}

/// A Pod as most are written: with all that `restricted` asks for missing.
fn unrestricted() -> Case {
    let bare = json!({ "spec": {
        "securityContext": null,
        "initContainers": null,
        "containers": [{ "name": "a" }, { "name": "b" }],
        "ephemeralContainers": null,
    } });
    pod(
        "allowPrivilegeEscalation",
        bare,
        &[
            (
                0,
                "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)",
            ),
            (
                8,
                "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
            securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or containers \"a\", \"b\" \
            must set securityContext.runAsNonRoot=true)",
            ),
            (
                19,
                "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
            securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or containers \"a\", \"b\" \
            must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set \
            securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            ),
            (
                22,
                "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
            securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers \"a\", \"b\" must \
            set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or containers \"a\", \"b\" \
            must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers \"a\", \"b\" must set \
            securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
            ),
        ],
    )
}
