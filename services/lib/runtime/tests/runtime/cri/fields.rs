//! Fields of a Pod's spec that the CRI has, and those that a runtime cannot obey.

use std::fs;
use std::net::Ipv4Addr;
use std::time::Duration;

use setpoint_runtime::contract::{ALL_OUTPUT, Fixture, Woken, container, id, sandbox};
use setpoint_runtime::cri::Cri;
use setpoint_runtime::{
    ContainerConfig, Error, LogOptions, Profile, Runtime as _, SandboxConfig, Security,
};
use setpoint_testkit::HANDLER;

use super::fixture::{Containerd, fixture, fixture_of, open};

#[tokio::test]
async fn a_pod_has_the_namespaces_of_its_node_that_it_asks_for() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let config = SandboxConfig {
        host_network: true,
        host_pid: true,
        host_ipc: true,
        ip: Ipv4Addr::LOCALHOST,
        ..sandbox()
    };
    fixture.runtime.run_sandbox(config).await.unwrap();
    let started = fixture.runtime.start(container(0, &["sleep", "1000"]));
    started.await.unwrap();
    fixture.running(0).await;
    for namespace in ["net", "pid", "ipc"] {
        let path = format!("/proc/self/ns/{namespace}");
        let own = fs::read_link(&path).unwrap();
        let seen = fixture.run(&["readlink", &path], ALL_OUTPUT, &[]).await.0;
        assert_eq!(seen.trim(), own.to_string_lossy());
    }
    fixture.clean_up().await;
}

/// Starts an attempt that ends by this signal alone, and waits until it would.
async fn start_trap(fixture: &Fixture<Cri>, attempt: u32, trap: &str) {
    let script = format!("trap {trap} USR1; trap '' TERM; echo ready; sleep 1000000 & wait; wait");
    let config = ContainerConfig {
        stop_signal: "SIGUSR1".into(),
        ..container(attempt, &["sh", "-c", &script])
    };
    fixture.runtime.start(config).await.unwrap();
    assert_eq!(fixture.read_lines(attempt, 1).await, "ready\n");
}

async fn stop(fixture: &Fixture<Cri>, attempt: u32, grace: Duration) {
    fixture.runtime.stop(&id(attempt), grace).await.unwrap();
}

#[tokio::test]
async fn a_container_is_stopped_by_the_signal_of_its_spec_and_killed_if_it_ignores_that() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    start_trap(&fixture, 0, "'exit 7'").await;
    stop(&fixture, 0, Duration::from_secs(600)).await;
    assert_eq!(fixture.exited(0).await.code, 7);
    start_trap(&fixture, 1, "''").await;
    stop(&fixture, 1, Duration::from_secs(1)).await;
    assert_eq!(fixture.exited(1).await.code, 137);
}

/// Denies one call, by which its effect is seen.
const NO_MKDIR: &str = r#"{
    "defaultAction": "SCMP_ACT_ALLOW",
    "syscalls": [{ "names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO" }]
}"#;

#[tokio::test]
async fn a_container_has_the_seccomp_profile_of_its_spec() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let root = containerd.settings().seccomp_profile_root;
    fs::create_dir_all(root.join("web")).unwrap();
    fs::write(root.join("web/no-mkdir.json"), NO_MKDIR).unwrap();
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    let fixture = Fixture::new(runtime, crate::MACHINE, woken, containerd);
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let local = |file: &str| Profile::Localhost(file.into());
    for (attempt, profile, expected) in [
        (0, Profile::Unset, "2 made\n"),
        (1, Profile::RuntimeDefault, "2 made\n"),
        (2, Profile::Unconfined, "0 made\n"),
        (3, local("web/no-mkdir.json"), "2 \n"),
    ] {
        let script = "while read -r name value; do case $name in Seccomp:) mode=$value;; esac; \
            done </proc/self/status; busybox mkdir /tmp/new 2>/dev/null && made=made; echo $mode \"$made\"";
        let mut config = container(attempt, &["sh", "-c", script]);
        config.security.seccomp_profile = profile.clone();
        fixture.runtime.start(config).await.unwrap();
        fixture.exited(attempt).await;
        let log = fixture.log(attempt, LogOptions::default()).await;
        assert_eq!(log, expected, "{profile:?}");
    }
    let mut config = container(4, &["true"]);
    config.security.seccomp_profile = local("web/none.json");
    let refused = fixture.runtime.start(config).await;
    assert!(
        matches!(&refused, Err(Error::Refused { why, .. }) if why.contains("none.json")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_sandbox_has_the_handler_of_its_class_if_the_runtime_has_it() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let fixture = fixture_of(containerd).await;
    let config = |handler: &str| SandboxConfig {
        runtime_handler: handler.into(),
        ..sandbox()
    };
    let refused = fixture.runtime.run_sandbox(config("none")).await;
    assert!(
        matches!(&refused, Err(Error::Refused { why, .. }) if why.contains("\"none\"")),
        "{refused:?}"
    );
    fixture.runtime.run_sandbox(config(HANDLER)).await.unwrap();
    let started = fixture.runtime.start(container(0, &["true"]));
    started.await.unwrap();
    assert_eq!(fixture.exited(0).await.code, 0);
}

#[tokio::test]
async fn what_the_runtime_or_the_machine_cannot_do_is_refused_in_clear_words() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let is_strict = containerd.features().await.supplemental_groups_policy == Some(true);
    let fixture = fixture_of(containerd).await;
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let has_app_armor = std::path::Path::new("/sys/kernel/security/apparmor").exists();
    let strict = Security {
        strict_groups: true,
        ..Security::default()
    };
    let profile = Security {
        app_armor_profile: Profile::Localhost("web".into()),
        ..Security::default()
    };
    let with = |security: Security, stop_signal: &str| ContainerConfig {
        security,
        stop_signal: stop_signal.into(),
        ..container(0, &["true"])
    };
    for (config, expected) in [
        // Containerd can since 2.0.
        (
            with(strict, ""),
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ),
        (
            with(profile, ""),
            "cannot enforce the profile web: AppArmor is not enabled on the host",
        ),
        (
            with(Security::default(), "SIGRTMIN+3"),
            "the stop signal SIGRTMIN+3 is not supported on this node",
        ),
    ] {
        let can = [(has_app_armor, "AppArmor"), (is_strict, "Supplemental")];
        if can
            .iter()
            .any(|(can, word)| *can && expected.contains(word))
        {
            continue;
        }
        match fixture.runtime.start(config).await {
            Err(Error::Config(message)) => assert_eq!(message, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
}

/// Whether the runtime can give its own capabilities to a container depends on the machine.
#[tokio::test]
async fn a_privileged_container_has_the_machine_or_ends_with_the_reason_why_not() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let config = SandboxConfig {
        privileged: true,
        ..sandbox()
    };
    fixture.runtime.run_sandbox(config).await.unwrap();
    let script = "echo written >/proc/sys/kernel/domainname && echo granted";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.privileged = true;
    if let Err(refused) = fixture.runtime.start(config).await {
        // CRI-O makes the process when it creates the container.
        let why = refused.to_string();
        assert!(why.contains("operation not permitted"), "{why}");
        return fixture.clean_up().await;
    }
    let exit = fixture.exited(0).await;
    match exit.code {
        0 => {
            let log = fixture.log(0, LogOptions::default()).await;
            assert_eq!(log, "granted\n");
        }
        // Without CAP_SYS_RESOURCE, which it needs to give all others.
        code => {
            let (reason, message) = (exit.reason(), &exit.message);
            assert_eq!((code, reason), (128, "StartError"), "{message}");
            assert!(message.contains("operation not permitted"), "{message}");
        }
    }
    fixture.clean_up().await;
}
