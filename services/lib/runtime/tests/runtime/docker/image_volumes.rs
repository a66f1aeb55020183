//! Volumes with the content of an image, seen from inside of containers.

use bollard::query_parameters::{ListVolumesOptionsBuilder, RemoveImageOptions};
use setpoint_runtime::contract::{Fixture, IMAGE, TIMEOUT, container, id, sandbox_with, uid};
use setpoint_runtime::docker::{Docker, Settings};
use setpoint_runtime::{
    ContainerConfig, Error, ImageVolume, LogOptions, Mount, Pull, Runtime as _, VolumeKind,
};
use tokio::time::timeout;

use super::fixture as docker;
use super::fixture::{client, fixture, fixture_with, import, settings};

fn mount(reference: &str, path: &str, sub_path: &str) -> Mount {
    Mount {
        volume: "content".into(),
        path: path.into(),
        sub_path: sub_path.into(),
        read_only: true,
        image: Some(ImageVolume {
            reference: reference.into(),
            pull: Pull::IfNotPresent,
            volume: String::new(),
        }),
        ..Mount::default()
    }
}

/// Starts a container once its image volumes are filled; returns the number of calls that had to wait, or why it cannot
/// start.
async fn start(fixture: &Fixture<Docker>, config: ContainerConfig) -> Result<usize, String> {
    let started = async {
        let mut waits = 0;
        loop {
            match fixture.runtime.start(config.clone()).await {
                Ok(_) => return Ok(waits),
                Err(Error::Image {
                    reason: "ContainerCreating",
                    ..
                }) => waits += 1,
                Err(Error::Image {
                    image,
                    reason,
                    message,
                    ..
                }) => return Err(format!("{reason} {image}: {message}")),
                Err(error) => return Err(error.to_string()),
            }
            fixture.changed().await;
        }
    };
    timeout(TIMEOUT, started).await.expect("it is filled")
}

/// Returns the names of the image volumes of this test.
async fn volumes(client: &bollard::Docker) -> Vec<String> {
    let labels = [
        format!("setpoint.dev/cluster={}", docker::cluster()),
        "setpoint.dev/image".to_owned(),
    ];
    let filters = std::collections::HashMap::from([("label", labels.to_vec())]);
    let options = ListVolumesOptionsBuilder::default()
        .filters(&filters)
        .build();
    let found = client.list_volumes(Some(options)).await.unwrap().volumes;
    let found = found.unwrap_or_default().into_iter();
    found.map(|volume| volume.name).collect()
}

#[tokio::test]
async fn the_content_of_an_image_is_read_only_and_goes_with_its_last_user() {
    let (Some(client), Some(fixture)) = (client().await, fixture().await) else {
        return;
    };
    let name = format!("setpoint-test/content-{}", uid());
    import(&client, &name, "1", "from an image").await;
    let image = format!("{name}:1");
    let sandbox = sandbox_with([("content", VolumeKind::Image)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let script = "exec 2>&1; cat /content/srv/mark; echo; cat /srv/mark; echo; ls -a /content; \
                  readlink /content/bin/sh; touch /content/new; touch /part/new; cat /part/mark";
    let mut config = container(0, &["sh", "-c", script]);
    config.mounts = vec![mount(&image, "/content", ""), mount(&image, "/part", "srv")];
    assert!(start(&fixture, config.clone()).await.unwrap() > 0);
    fixture.exited(0).await;
    let log = fixture.log(0, LogOptions::default()).await;
    let expected = [
        "from an image\n\n",
        ".\n..\nbin\ndev\netc\nproc\nsrv\nsys\ntmp\nbusybox\n",
        "touch: /content/new: Read-only file system\n",
        "touch: /part/new: Read-only file system\n",
        "from an image",
    ];
    assert_eq!(log, expected.concat());
    let mut broken = config.clone();
    broken.id = id(1);
    broken.mounts = vec![mount(&image, "/part", "srv/none")];
    let refused = start(&fixture, broken).await.unwrap_err();
    let expected = "failed to prepare subPath for volumeMount \"content\" of container \"main\"";
    assert!(refused.starts_with(expected), "{refused}");
    config.id = id(1);
    assert_eq!(start(&fixture, config).await, Ok(0), "it is filled once");
    fixture.exited(1).await;
    assert_eq!(volumes(&client).await.len(), 1);
    let _second = fixture_with(settings()).await;
    assert_eq!(
        volumes(&client).await.len(),
        1,
        "a new agent keeps what is used"
    );
    fixture.runtime.remove_sandbox(&uid()).await.unwrap();
    assert_eq!(volumes(&client).await, Vec::<String>::new());
    let removed = client.remove_image(&image, None::<RemoveImageOptions>, None);
    removed.await.unwrap();
}

#[tokio::test]
async fn an_image_beyond_the_maximum_size_is_no_volume() {
    let Some(client) = client().await else { return };
    let small = Settings {
        image_volume_max_size: "1Ki".into(),
        ..settings()
    };
    let fixture = fixture_with(small).await;
    let sandbox = sandbox_with([("content", VolumeKind::Image)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let mut config = container(0, &["true"]);
    config.mounts = vec![mount(IMAGE, "/content", "")];
    let refused = start(&fixture, config).await.unwrap_err();
    assert!(
        refused.starts_with("ImageVolumeMountFailed: image "),
        "{refused}"
    );
    assert!(refused.ends_with("at most 1024"), "{refused}");
    assert_eq!(volumes(&client).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_image_volume_that_cannot_be_pulled_has_the_reasons_of_the_kubelet() {
    let Some(fixture) = fixture().await else {
        return;
    };
    let sandbox = sandbox_with([("content", VolumeKind::Image)]);
    fixture.runtime.run_sandbox(sandbox).await.unwrap();
    let missing = "127.0.0.1:9/setpoint-test/none:1";
    let mut config = container(0, &["true"]);
    config.mounts = vec![mount(missing, "/content", "")];
    let failed = start(&fixture, config.clone()).await.unwrap_err();
    assert!(
        failed.starts_with(&format!("ErrImagePull {missing}: ")),
        "{failed}"
    );
    let failed = start(&fixture, config.clone()).await.unwrap_err();
    let expected = format!("ImagePullBackOff {missing}: Back-off pulling image {missing:?}");
    assert!(failed.starts_with(&expected), "{failed}");
    let image = config.mounts[0].image.as_mut().unwrap();
    image.pull = Pull::Never;
    let failed = start(&fixture, config).await.unwrap_err();
    assert!(failed.starts_with("ErrImageNeverPull"), "{failed}");
}
