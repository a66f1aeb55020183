//! The cases of the checks of `baseline`.

use serde_json::{Value, json};

use crate::cases::{Case, container, pod};

/// A patch of the security context of a container.
pub fn context(fields: Value) -> Value {
    json!({ "securityContext": fields })
}

/// A patch of the security context of a Pod.
pub fn pod_context(fields: Value) -> Value {
    json!({ "spec": { "securityContext": fields } })
}

pub fn cases() -> Vec<Case> {
    let mut all = app_armor();
    all.extend(host());
    all.extend(probes());
    all.extend(privileges());
    all.extend(se_linux());
    all.extend(seccomp());
    all.extend(sysctls());
    all
}

fn app_armor() -> Vec<Case> {
    let unconfined = json!({ "appArmorProfile": { "type": "Unconfined" } });
    let annotation = "container.apparmor.security.beta.kubernetes.io/main";
    let with_annotation =
        |profile: &str| json!({ "metadata": { "annotations": { annotation: profile } } });
    let mut both = with_annotation("unconfined");
    both["spec"] = context(unconfined.clone());
    let profile = |name: &str| context(json!({ "appArmorProfile": { "type": name } }));
    vec![
        pod(
            "appArmorProfile",
            pod_context(unconfined),
            &[(
                0,
                "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")",
            )],
        ),
        container(
            "appArmorProfile",
            profile("Unconfined"),
            &[(
                0,
                "forbidden AppArmor profile (container \"NAME\" must not set AppArmor profile type to \"Unconfined\")",
            )],
        ),
        container("appArmorProfile", profile("RuntimeDefault"), &[]),
        container("appArmorProfile", profile("Localhost"), &[]),
        pod(
            "appArmorProfile",
            with_annotation("unconfined"),
            &[(
                0,
                "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"container.apparmor.security.beta.kubernetes.io/main=\"unconfined\"\")",
            )],
        ),
        pod(
            "appArmorProfile",
            both,
            &[(
                0,
                "forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to \"Unconfined\", \
             \"container.apparmor.security.beta.kubernetes.io/main=\"unconfined\"\")",
            )],
        ),
        pod("appArmorProfile", with_annotation("localhost/web"), &[]),
        pod("appArmorProfile", with_annotation("runtime/default"), &[]),
        pod("appArmorProfile", with_annotation(""), &[]),
    ]
}

fn host() -> Vec<Case> {
    let namespaces = json!({ "spec": { "hostNetwork": true, "hostPID": true, "hostIPC": true } });
    let volumes = json!({ "spec": { "volumes": [
        { "name": "logs", "hostPath": { "path": "/var/log" } },
        { "name": "cache", "emptyDir": {} },
        { "name": "run", "hostPath": { "path": "/run" } },
    ] } });
    let port = |ports: &[i32]| {
        let ports = ports
            .iter()
            .map(|port| json!({ "containerPort": 80, "hostPort": port }));
        json!({ "ports": ports.collect::<Vec<_>>() })
    };
    vec![
        pod(
            "hostNamespaces",
            namespaces,
            &[(
                0,
                "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
            )],
        ),
        pod(
            "hostNamespaces",
            json!({ "spec": { "hostPID": true } }),
            &[(0, "host namespaces (hostPID=true)")],
        ),
        pod(
            "hostNamespaces",
            json!({ "spec": { "hostPID": false } }),
            &[],
        ),
        pod(
            "hostPathVolumes",
            volumes,
            &[(0, "hostPath volumes (volumes \"logs\", \"run\")")],
        ),
        container("hostPorts", port(&[0]), &[]),
        container(
            "hostPorts",
            port(&[80]),
            &[(0, "hostPort (container \"NAME\" uses hostPort 80)")],
        ),
        // As upstream, in the order of texts.
        container(
            "hostPorts",
            port(&[80, 443, 0]),
            &[(0, "hostPort (container \"NAME\" uses hostPorts 443, 80)")],
        ),
    ]
}

fn probes() -> Vec<Case> {
    const ONE: &[(i64, &str)] = &[(
        34,
        "probe or lifecycle host (container \"NAME\" uses probe or lifecycle host \"10.0.0.1\")",
    )];
    let http = json!({ "httpGet": { "host": "10.0.0.1", "port": 80 } });
    let tcp = json!({ "tcpSocket": { "host": "10.0.0.1", "port": 80 } });
    let own = json!({ "httpGet": { "port": 80 }, "tcpSocket": { "port": 80 } });
    let mut all = Vec::new();
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        all.push(container(
            "hostProbesAndHostLifecycle",
            json!({ probe: http }),
            ONE,
        ));
        all.push(container(
            "hostProbesAndHostLifecycle",
            json!({ probe: tcp }),
            ONE,
        ));
        all.push(container(
            "hostProbesAndHostLifecycle",
            json!({ probe: own }),
            &[],
        ));
    }
    for hook in ["postStart", "preStop"] {
        let of = |action: &Value| json!({ "lifecycle": { hook: action } });
        all.push(container("hostProbesAndHostLifecycle", of(&http), ONE));
        all.push(container("hostProbesAndHostLifecycle", of(&tcp), ONE));
        all.push(container("hostProbesAndHostLifecycle", of(&own), &[]));
    }
    let two = json!({ "livenessProbe": http, "readinessProbe": { "tcpSocket": { "host": "::1", "port": 1 } } });
    all.push(container("hostProbesAndHostLifecycle", two, &[(
        34,
        "probe or lifecycle host (container \"NAME\" uses probe or lifecycle hosts \"10.0.0.1\", \"::1\")",
    )]));
    all
}

fn privileges() -> Vec<Case> {
    let added = |names: Value| context(json!({ "capabilities": { "add": names } }));
    let windows = json!({ "windowsOptions": { "hostProcess": true } });
    let unmasked = context(json!({ "procMount": "Unmasked" }));
    let mut own_users = json!({ "spec": { "hostUsers": false } });
    own_users["spec"]["containers"] =
        json!([{ "name": "main", "securityContext": { "procMount": "Unmasked" } }]);
    vec![
        container(
            "capabilities_baseline",
            added(json!(["CHOWN", "KILL"])),
            &[],
        ),
        container(
            "capabilities_baseline",
            added(json!(["SYS_ADMIN", "CHOWN", "NET_RAW"])),
            &[(
                0,
                "non-default capabilities (container \"NAME\" must not include \"NET_RAW\", \"SYS_ADMIN\" in \
             securityContext.capabilities.add)",
            )],
        ),
        container("privileged", context(json!({ "privileged": false })), &[]),
        container(
            "privileged",
            context(json!({ "privileged": true })),
            &[(
                0,
                "privileged (container \"NAME\" must not set securityContext.privileged=true)",
            )],
        ),
        container("procMount", context(json!({ "procMount": "Default" })), &[]),
        container(
            "procMount",
            unmasked,
            &[(
                0,
                "procMount (container \"NAME\" must not set securityContext.procMount to \"Unmasked\")",
            )],
        ),
        pod(
            "procMount",
            own_users,
            &[
                (
                    0,
                    "procMount (container \"main\" must not set securityContext.procMount to \"Unmasked\")",
                ),
                (35, ""),
            ],
        ),
        pod(
            "windowsHostProcess",
            pod_context(windows.clone()),
            &[(
                0,
                "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            )],
        ),
        container(
            "windowsHostProcess",
            context(windows),
            &[(
                0,
                "hostProcess (container \"NAME\" must not set securityContext.windowsOptions.hostProcess=true)",
            )],
        ),
        container(
            "windowsHostProcess",
            context(json!({ "windowsOptions": { "hostProcess": false } })),
            &[],
        ),
    ]
}

fn se_linux() -> Vec<Case> {
    let options = |fields: Value| context(json!({ "seLinuxOptions": fields }));
    let all = json!({ "seLinuxOptions": { "type": "spc_t", "user": "system_u", "role": "r", "level": "s0" } });
    vec![
        container(
            "seLinuxOptions",
            options(json!({ "type": "container_t", "level": "s0:c1" })),
            &[],
        ),
        container(
            "seLinuxOptions",
            options(json!({ "type": "container_engine_t" })),
            &[
                (
                    0,
                    "seLinuxOptions (container \"NAME\" set forbidden securityContext.seLinuxOptions: type \
                 \"container_engine_t\")",
                ),
                (31, ""),
            ],
        ),
        container(
            "seLinuxOptions",
            options(json!({ "user": "root" })),
            &[(
                0,
                "seLinuxOptions (container \"NAME\" set forbidden securityContext.seLinuxOptions: user may not be set)",
            )],
        ),
        container(
            "seLinuxOptions",
            options(json!({ "role": "r" })),
            &[(
                0,
                "seLinuxOptions (container \"NAME\" set forbidden securityContext.seLinuxOptions: role may not be set)",
            )],
        ),
        pod(
            "seLinuxOptions",
            pod_context(all),
            &[(
                0,
                "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; user may not be set; \
             role may not be set)",
            )],
        ),
    ]
}

fn seccomp() -> Vec<Case> {
    let unconfined = json!({ "seccompProfile": { "type": "Unconfined" } });
    let annotations = |annotations: Value| json!({ "metadata": { "annotations": annotations } });
    let of_pod = "seccomp.security.alpha.kubernetes.io/pod";
    let of = |name: &str| format!("container.seccomp.security.alpha.kubernetes.io/{name}");
    let bad = json!({ of_pod: "unconfined", of("init"): "localhost/a", of("debug"): "", of("none"): "unconfined" });
    vec![
        pod(
            "seccompProfile_baseline",
            pod_context(unconfined.clone()),
            &[(
                19,
                "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\")",
            )],
        ),
        container(
            "seccompProfile_baseline",
            context(unconfined),
            &[(
                19,
                "seccompProfile (container \"NAME\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
            )],
        ),
        container(
            "seccompProfile_baseline",
            context(json!({ "seccompProfile": { "type": "Localhost" } })),
            &[],
        ),
        pod(
            "seccompProfile_baseline",
            annotations(bad),
            &[
                (
                    0,
                    "seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/debug=\"\", \
                 seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")",
                ),
                (19, ""),
            ],
        ),
        pod(
            "seccompProfile_baseline",
            annotations(json!({ of_pod: "docker/default", of("main"): "runtime/default" })),
            &[],
        ),
    ]
}

fn sysctls() -> Vec<Case> {
    let sysctls = |names: &[&str]| {
        let sysctls = names
            .iter()
            .map(|name| json!({ "name": name, "value": "1" }));
        pod_context(json!({ "sysctls": sysctls.collect::<Vec<_>>() }))
    };
    let names = &[
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    ];
    vec![
        pod("sysctls", sysctls(names), &[]),
        pod(
            "sysctls",
            sysctls(&["vm.a", "kernel.msgmax"]),
            &[(0, "forbidden sysctls (vm.a, kernel.msgmax)")],
        ),
        pod(
            "sysctls",
            sysctls(&["net.ipv4.ip_local_reserved_ports"]),
            &[
                (0, "forbidden sysctls (net.ipv4.ip_local_reserved_ports)"),
                (27, ""),
            ],
        ),
        pod(
            "sysctls",
            sysctls(&["net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_time"]),
            &[
                (
                    0,
                    "forbidden sysctls (net.ipv4.tcp_fin_timeout, net.ipv4.tcp_keepalive_time)",
                ),
                (29, ""),
            ],
        ),
        pod(
            "sysctls",
            sysctls(&[
                "net.ipv4.tcp_keepalive_intvl",
                "net.ipv4.tcp_keepalive_probes",
            ]),
            &[
                (
                    0,
                    "forbidden sysctls (net.ipv4.tcp_keepalive_intvl, net.ipv4.tcp_keepalive_probes)",
                ),
                (29, ""),
            ],
        ),
        pod(
            "sysctls",
            sysctls(&["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]),
            &[
                (
                    0,
                    "forbidden sysctls (net.ipv4.tcp_rmem, net.ipv4.tcp_wmem)",
                ),
                (32, ""),
            ],
        ),
    ]
}
