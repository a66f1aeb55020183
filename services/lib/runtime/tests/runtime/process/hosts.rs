//! The hosts file of Pods whose containers have mounts of their own.

use setpoint_runtime::contract::{container, sandbox, uid};
use setpoint_runtime::{Hosts, LogOptions, Runtime as _, SandboxConfig};

use super::fixture::on_disk;

fn hosts(gateway: &str) -> Hosts {
    Hosts {
        cluster: vec![(gateway.into(), vec!["kubernetes.default.svc".into()])],
        ..Hosts::default()
    }
}

#[tokio::test]
async fn a_process_has_a_hosts_file_of_its_own_that_follows_the_cluster() {
    let fixture = on_disk();
    if !fixture.runtime.mounts_volumes() {
        return eprintln!("SKIPPED: this agent may not mount files");
    }
    let machine = std::fs::read_to_string("/etc/hosts").unwrap();
    let named = SandboxConfig {
        hosts: hosts("10.0.0.1"),
        ..sandbox()
    };
    let ip = named.ip;
    fixture.runtime.run_sandbox(named).await.unwrap();
    let script = "cat /etc/hosts; until grep 10.0.0.2 /etc/hosts; do sleep 0.1; done";
    let mut config = container(0, &["sh", "-c", script]);
    config.security.run_as_user = Some(1000);
    fixture.runtime.start(config).await.unwrap();
    let text = hosts("10.0.0.1").file("web", ip, Some(&machine));
    fixture.read_lines(0, text.lines().count()).await;
    let (uid, other) = (uid(), hosts("10.0.0.2"));
    let changed = fixture.runtime.update_hosts(&uid, "web", &other);
    changed.await.unwrap();
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    assert_eq!(log, text + "10.0.0.2\tkubernetes.default.svc\n");
    let unchanged = std::fs::read_to_string("/etc/hosts").unwrap();
    assert_eq!(unchanged, machine);
}
