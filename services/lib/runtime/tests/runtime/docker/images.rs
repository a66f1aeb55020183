//! Images that are present, pulled, or not available.

use std::time::Duration;

use bollard::query_parameters::PushImageOptionsBuilder;
use futures::TryStreamExt as _;
use setpoint_runtime::contract::{Fixture, container, sandbox, uid};
use setpoint_runtime::docker::Docker;
use setpoint_runtime::{Error, ImageOrigin, Pull, Runtime as _};
use setpoint_testkit::ImageRegistry;

use super::fixture as docker;
use super::fixture::{client, fixture};

async fn reason(fixture: &Fixture<Docker>, pull: Pull) -> &'static str {
    let mut config = container(0, &[]);
    (config.image, config.pull) = ("127.0.0.1:9/setpoint-test/none:1".into(), pull);
    match fixture.runtime.start(config).await {
        Err(Error::Image { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Starts an attempt until its image is available or its pull fails; returns the origin or the reason, and the number
/// of pulls that began.
async fn origin(
    fixture: &Fixture<Docker>,
    attempt: u32,
    image: &str,
    pull: Pull,
) -> (Result<ImageOrigin, &'static str>, usize) {
    let mut begun = 0;
    loop {
        let mut config = container(attempt, &["true"]);
        (config.image, config.pull) = (image.to_owned(), pull);
        match fixture.runtime.start(config).await {
            Ok(origin) => return (Ok(origin), begun),
            Err(Error::Image {
                reason, pulling, ..
            }) => {
                begun += usize::from(pulling);
                if reason != "ContainerCreating" {
                    return (Err(reason), begun);
                }
                fixture.changed().await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// Pushes an image to the registry that the engine does not have.
async fn image_in(registry: &ImageRegistry, client: &bollard::Docker) -> String {
    let name = registry.name(&uid());
    docker::import(client, &name, "1", &uid()).await;
    let options = PushImageOptionsBuilder::default().tag("1").build();
    let pushed = client.push_image(&name, Some(options), None);
    pushed.try_collect::<Vec<_>>().await.unwrap();
    assert!(registry.forget(), "the engine forgets {name}");
    format!("{name}:1")
}

#[tokio::test]
async fn an_image_is_pulled_when_its_policy_says_so() {
    let Some(registry) = ImageRegistry::start() else {
        return;
    };
    let (Some(client), Some(fixture)) = (client().await, fixture().await) else {
        return;
    };
    let image = image_in(&registry, &client).await;
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    let never = origin(&fixture, 0, &image, Pull::Never).await;
    assert_eq!(never, (Err("ErrImageNeverPull"), 0));
    let (found, begun) = origin(&fixture, 0, &image, Pull::IfNotPresent).await;
    let Ok(ImageOrigin::Pulled(pulled)) = found else {
        panic!("{found:?}");
    };
    assert!(pulled.bytes > 1 << 20 && pulled.took <= pulled.waited && !pulled.took.is_zero());
    assert_eq!((begun, fixture.exited(0).await.code), (1, 0));
    let there = (Ok(ImageOrigin::Present), 0);
    assert_eq!(origin(&fixture, 1, &image, Pull::IfNotPresent).await, there);
    assert_eq!(origin(&fixture, 2, &image, Pull::Never).await, there);
    let (again, begun) = origin(&fixture, 3, &image, Pull::Always).await;
    assert!(matches!((again, begun), (Ok(ImageOrigin::Pulled(_)), 1)));
    let missing = image.trim_end_matches(":1").to_owned() + ":2";
    let failed = origin(&fixture, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(failed, (Err("ErrImagePull"), 1));
    let backoffs = origin(&fixture, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(backoffs, (Err("ImagePullBackOff"), 0));
    let wrong = origin(&fixture, 4, "Not/A/Name", Pull::Always).await;
    assert_eq!(wrong, (Err("InvalidImageName"), 0));
}

#[tokio::test]
async fn an_unavailable_image_has_the_reasons_of_the_kubelet() {
    let Some(fixture) = fixture().await else {
        return;
    };
    fixture.runtime.run_sandbox(sandbox()).await.unwrap();
    assert_eq!(reason(&fixture, Pull::Never).await, "ErrImageNeverPull");
    assert_eq!(
        reason(&fixture, Pull::IfNotPresent).await,
        "ContainerCreating"
    );
    let failed = async {
        loop {
            fixture.changed().await;
            match reason(&fixture, Pull::IfNotPresent).await {
                "ContainerCreating" => {}
                other => return other,
            }
        }
    };
    let failed = tokio::time::timeout(Duration::from_secs(60), failed)
        .await
        .unwrap();
    assert_eq!(failed, "ErrImagePull");
    assert_eq!(
        reason(&fixture, Pull::IfNotPresent).await,
        "ImagePullBackOff"
    );
    assert!(fixture.container(0).is_none());
}
