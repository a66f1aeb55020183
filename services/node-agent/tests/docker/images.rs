//! Images: there, pulled, or not to be had.

use std::time::Duration;

use bollard::query_parameters::PushImageOptionsBuilder;
use futures::TryStreamExt as _;
use setpoint_node_agent::runtime::docker::Docker;
use setpoint_node_agent::runtime::{Error, Origin, Pull, Runtime as _};
use setpoint_testkit::ImageRegistry;

use crate::support::docker::{bench, client};
use crate::support::{Bench, container, docker, sandbox, uid};

async fn reason(bench: &Bench<Docker>, pull: Pull) -> &'static str {
    let mut config = container(0, &[]);
    (config.image, config.pull) = ("127.0.0.1:9/setpoint-test/none:1".into(), pull);
    match bench.runtime.start(config).await {
        Err(Error::Image { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Where the image of an attempt comes from, once it is there; or why it is not. Also how many pulls began.
async fn origin(
    bench: &Bench<Docker>,
    attempt: u32,
    image: &str,
    pull: Pull,
) -> (Result<Origin, &'static str>, usize) {
    let mut begun = 0;
    loop {
        let mut config = container(attempt, &["true"]);
        (config.image, config.pull) = (image.to_owned(), pull);
        match bench.runtime.start(config).await {
            Ok(origin) => return (Ok(origin), begun),
            Err(Error::Image {
                reason, pulling, ..
            }) => {
                begun += usize::from(pulling);
                if reason != "ContainerCreating" {
                    return (Err(reason), begun);
                }
                bench.changed().await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// An image that only the registry has.
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
    let (Some(client), Some(bench)) = (client().await, bench().await) else {
        return;
    };
    let image = image_in(&registry, &client).await;
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    let never = origin(&bench, 0, &image, Pull::Never).await;
    assert_eq!(never, (Err("ErrImageNeverPull"), 0));
    let (found, begun) = origin(&bench, 0, &image, Pull::IfNotPresent).await;
    let Ok(Origin::Registry(pulled)) = found else {
        panic!("{found:?}");
    };
    assert!(pulled.bytes > 1 << 20 && pulled.took <= pulled.waited && !pulled.took.is_zero());
    assert_eq!((begun, bench.exited(0).await.code), (1, 0));
    let there = (Ok(Origin::Machine), 0);
    assert_eq!(origin(&bench, 1, &image, Pull::IfNotPresent).await, there);
    assert_eq!(origin(&bench, 2, &image, Pull::Never).await, there);
    let (again, begun) = origin(&bench, 3, &image, Pull::Always).await;
    assert!(matches!((again, begun), (Ok(Origin::Registry(_)), 1)));
    let missing = image.trim_end_matches(":1").to_owned() + ":2";
    let failed = origin(&bench, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(failed, (Err("ErrImagePull"), 1));
    let rests = origin(&bench, 4, &missing, Pull::IfNotPresent).await;
    assert_eq!(rests, (Err("ImagePullBackOff"), 0));
    let wrong = origin(&bench, 4, "Not/A/Name", Pull::Always).await;
    assert_eq!(wrong, (Err("InvalidImageName"), 0));
}

#[tokio::test]
async fn an_image_that_cannot_be_had_is_told_in_the_words_of_the_kubelet() {
    let Some(bench) = bench().await else { return };
    bench.runtime.run_sandbox(sandbox()).await.unwrap();
    assert_eq!(reason(&bench, Pull::Never).await, "ErrImageNeverPull");
    assert_eq!(
        reason(&bench, Pull::IfNotPresent).await,
        "ContainerCreating"
    );
    let failed = async {
        loop {
            bench.changed().await;
            match reason(&bench, Pull::IfNotPresent).await {
                "ContainerCreating" => {}
                other => return other,
            }
        }
    };
    let failed = tokio::time::timeout(Duration::from_secs(60), failed)
        .await
        .unwrap();
    assert_eq!(failed, "ErrImagePull");
    assert_eq!(reason(&bench, Pull::IfNotPresent).await, "ImagePullBackOff");
    assert!(bench.container(0).is_none());
}
