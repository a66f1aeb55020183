//! An agent that does not reach the network and the volumes of its Pods, as in compose.yaml.

use bollard::exec::{CreateExecOptions, StartExecResults};
use futures::TryStreamExt as _;
use setpoint_runtime::contract::{ALL_OUTPUT, container, sandbox_with, uid};
use setpoint_runtime::docker::{Engine, Settings};
use setpoint_runtime::{File, Mount, Runtime as _, Volume, VolumeKind};

use super::fixture::{client, fixture_of, import_with_libraries, settings};

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

/// Runs a command that writes to a file, as root in a pause container; returns what it says.
async fn write_as_root(client: &bollard::Docker, pause: &str, path: &str) -> String {
    let script = format!("echo evil >>{path}; echo done");
    let options = CreateExecOptions {
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        user: Some("0:0"),
        cmd: Some(vec!["sh", "-c", &script]),
        ..CreateExecOptions::default()
    };
    let exec = client.create_exec(pause, options).await.unwrap().id;
    let started = client.start_exec(&exec, None).await.unwrap();
    let StartExecResults::Attached { output, .. } = started else {
        panic!("{started:?}");
    };
    let said: Vec<_> = output.try_collect().await.unwrap();
    said.iter().map(ToString::to_string).collect()
}

/// Checks DG15: nobody but the agent writes to its binary and to the files of volumes.
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
    let engine = engine.from_within(env!("CARGO_BIN_EXE_runtime-program"));
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
    let pause = format!("k8s_POD_web_default_{}_0", uid());
    let paths = ["/.setpoint/node-agent", "/volumes/secret/new", "/made"];
    for path in paths {
        let said = write_as_root(&client, &pause, path).await;
        assert!(said.contains("Read-only file system"), "{path}: {said}");
    }
    let usage = fixture.runtime.disk_usage([uid()].into()).await;
    let volumes = &usage.volumes[&uid()];
    assert!(volumes["secret"].bytes > 0, "{volumes:?}");
    fixture.clean_up().await;
}
