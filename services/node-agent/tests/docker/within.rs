//! An agent that does not reach the network and the volumes of its Pods, as in compose.yaml.

use setpoint_node_agent::runtime::docker::{Engine, Settings};
use setpoint_node_agent::runtime::{File, Mount, Runtime as _, Volume, VolumeKind};

use crate::support::docker::{client, fixture_of, import_with_libraries, settings};
use crate::support::{ALL_OUTPUT, container, sandbox_with, uid};

fn files(content: &str) -> VolumeKind {
    let file = File {
        path: "key".into(),
        content: content.into(),
        mode: 0o444,
        user: None,
    };
    VolumeKind::Files {
        files: vec![file],
        secret: true,
    }
}

#[tokio::test]
async fn pods_are_reached_from_within_their_pause_containers() {
    let Some(client) = client().await else {
        return;
    };
    let settings = Settings {
        pause_image: import_with_libraries(&client).await,
        ..settings()
    };
    let engine = Engine::connect(&settings).await.unwrap();
    let engine = engine.from_within(env!("CARGO_BIN_EXE_node-agent"));
    let fixture = fixture_of(engine, settings).await;
    let sandbox = sandbox_with([("secret", files("one"))]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut config = container(0, &["busybox", "nc", "-ll", "-p", "8080", "-e", "cat"]);
    config.mounts = vec![Mount {
        volume: "secret".into(),
        path: "/secret".into(),
        read_only: true,
        ..Mount::default()
    }];
    fixture.runtime.start(config).await.unwrap();
    fixture.running(0).await;
    let data = "ping\n".repeat(20_000);
    let echo = fixture.exchange(8080, &data).await;
    assert!(echo == data);
    let refused = fixture.runtime.connect(&uid(), 8081).await.err().unwrap();
    let message = refused.to_string();
    assert!(
        message.ends_with(":8081: connect: connection refused"),
        "{message}"
    );
    let volume = Volume {
        name: "secret".into(),
        kind: files("two"),
        group: None,
    };
    let updated = fixture.runtime.update_volumes(&uid(), vec![volume]).await;
    updated.unwrap();
    let seen = fixture.run(&["cat", "/secret/key"], ALL_OUTPUT, &[]).await;
    assert_eq!(seen.0, "two");
    let usage = fixture.runtime.disk_usage([uid()].into()).await;
    let volumes = &usage.volumes[&uid()];
    assert!(volumes["secret"].bytes > 0, "{volumes:?}");
    fixture.clean_up().await;
}
