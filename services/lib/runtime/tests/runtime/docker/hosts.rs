//! The hosts file of Pods, as their containers see it.

use setpoint_runtime::contract::{Fixture, container, sandbox, uid};
use setpoint_runtime::docker::{Docker, Engine, Settings};
use setpoint_runtime::{Hosts, LogOptions, Runtime as _, SandboxConfig};

use super::fixture::{client, fixture, fixture_of, import_with_libraries, settings};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn hosts(gateway: &str) -> Hosts {
    Hosts {
        domain: "sub.default.svc.cluster.local".into(),
        cluster: vec![(gateway.into(), names(&["kubernetes.default.svc"]))],
        aliases: vec![("10.9.8.7".into(), names(&["db", "db.local"]))],
        ..Hosts::default()
    }
}

async fn run(fixture: &Fixture<Docker>, script: &str) {
    let named = SandboxConfig {
        hosts: hosts("10.0.0.1"),
        ..sandbox()
    };
    fixture.runtime.run_sandbox(named).await.unwrap();
    let mut config = container(0, &["sh", "-c", script]);
    config.security.run_as_user = Some(1000);
    config.security.read_only = true;
    fixture.runtime.start(config).await.unwrap();
}

async fn log(fixture: &Fixture<Docker>) -> String {
    fixture.exited(0).await;
    fixture.log(0, LogOptions::default()).await
}

#[tokio::test]
async fn the_hosts_file_has_the_aliases_and_the_domain_of_the_pod() {
    let Some(fixture) = fixture().await else {
        return;
    };
    run(&fixture, "cat /etc/hosts").await;
    let log = log(&fixture).await;
    let ip = fixture.runtime.sandboxes(&sandbox().pod())[0].config.ip;
    assert_eq!(log, hosts("10.0.0.1").file("web", ip, None));
}

/// Checks that a running container sees other entries, and that they stay until the next change.
async fn follows(fixture: &Fixture<Docker>) {
    run(
        fixture,
        "until grep 10.0.0.2 /etc/hosts; do sleep 0.1; done",
    )
    .await;
    let (uid, other) = (uid(), hosts("10.0.0.2"));
    let changed = fixture.runtime.update_hosts(&uid, "web", &other);
    changed.await.unwrap();
    assert_eq!(log(fixture).await, "10.0.0.2\tkubernetes.default.svc\n");
}

#[tokio::test]
async fn running_containers_see_new_addresses_of_the_cluster() {
    let Some(fixture) = fixture().await else {
        return;
    };
    follows(&fixture).await;
}

#[tokio::test]
async fn an_agent_that_does_not_reach_volumes_changes_hosts_files_in_a_container() {
    let Some(client) = client().await else {
        return;
    };
    let settings = Settings {
        pause_image: import_with_libraries(&client).await,
        ..settings()
    };
    let engine = Engine::connect(&settings).await.unwrap();
    let engine = engine.from_within(env!("CARGO_BIN_EXE_runtime-program"));
    follows(&fixture_of(engine, settings).await).await;
}
