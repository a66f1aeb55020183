//! Registries that lack an image, serve a damaged one, or never answer.

use std::net::TcpListener;
use std::time::Duration;

use setpoint_runtime::contract::{POLL_INTERVAL, TIMEOUT, Woken, container};
use setpoint_runtime::cri::Cri;
use setpoint_runtime::{Error, ImageOrigin, Pull, Runtime as _};
use setpoint_testkit::ImageRegistry;
use tokio::time::{sleep, timeout};

use super::fixture::{Containerd, WithRegistry, open_with};

/// The reason and the message of a container that waits for its image.
type Waiting = (&'static str, String);

/// Returns a runtime, and an image in a registry that anyone may pull.
async fn with_image(name: &str) -> Option<WithRegistry> {
    WithRegistry::start(ImageRegistry::start(), Containerd::start, name).await
}

/// Asks for a container of this name and image. Each name has a backoff of its own.
async fn start(runtime: &Cri, name: &str, image: &str) -> Result<ImageOrigin, Waiting> {
    let mut config = container(0, &["true"]);
    config.id.name = name.into();
    config.image = image.into();
    config.pull = Pull::IfNotPresent;
    match runtime.start(config).await {
        Ok(origin) => Ok(origin),
        Err(Error::Image {
            reason, message, ..
        }) => Err((reason, message)),
        Err(other) => panic!("{image}: {other:?}"),
    }
}

/// Asks for a container until the pull of its image has ended.
async fn pulled(runtime: &Cri, name: &str, image: &str) -> Result<ImageOrigin, Waiting> {
    let ended = async {
        loop {
            match start(runtime, name, image).await {
                Err(("ContainerCreating", _)) => sleep(POLL_INTERVAL).await,
                ended => return ended,
            }
        }
    };
    timeout(TIMEOUT, ended).await.expect("the pull ends")
}

/// Returns the message of a pull that must fail.
async fn failure(runtime: &Cri, name: &str, image: &str) -> String {
    let (reason, message) = pulled(runtime, name, image).await.unwrap_err();
    assert_eq!(reason, "ErrImagePull", "{message}");
    message
}

#[tokio::test]
async fn an_image_that_is_absent_or_damaged_is_not_run_and_is_once_it_is_whole() {
    let Some(with_registry) = with_image("damaged").await else {
        return;
    };
    let WithRegistry {
        registry,
        containerd: _containerd,
        image,
        runtime,
    } = with_registry;
    let absent = failure(&runtime, "absent", &registry.name("none")).await;
    assert!(absent.contains("not found"), "{absent}");
    registry.damage();
    let damaged = failure(&runtime, "damaged", &image).await;
    assert!(damaged.contains("unexpected commit digest"), "{damaged}");
    registry.damage();
    // A runtime goes on with the damaged part of a layer until it has collected that.
    let whole = async {
        for number in 0.. {
            match pulled(&runtime, &format!("whole-{number}"), &image).await {
                Err((_, message)) if message.contains("unexpected commit digest") => {}
                whole => return Some(whole),
            }
        }
        None
    };
    let whole = timeout(TIMEOUT, whole).await.expect("the pull succeeds");
    assert!(
        matches!(whole, Some(Ok(ImageOrigin::Pulled(_)))),
        "{whole:?}"
    );
}

#[tokio::test]
async fn a_registry_with_an_unknown_certificate_is_told_and_used_once_it_is_trusted() {
    let Some(unknown) = ImageRegistry::with_unknown_certificate() else {
        return;
    };
    let Some(with_registry) = with_image("plain").await else {
        return;
    };
    let WithRegistry {
        registry: _other,
        containerd,
        image: plain,
        runtime,
    } = with_registry;
    let image = format!("{}:1", unknown.name("tls"));
    containerd.use_tls(unknown.address(), unknown.certificate());
    containerd.push_over_tls(&image);
    containerd.use_tls(unknown.address(), None);
    let refused = failure(&runtime, "refused", &image).await;
    assert!(
        refused.contains("x509: certificate signed by unknown authority"),
        "{refused}"
    );
    let went_on = pulled(&runtime, "other", &plain).await;
    assert!(matches!(went_on, Ok(ImageOrigin::Pulled(_))), "{went_on:?}");
    containerd.use_tls(unknown.address(), unknown.certificate());
    let trusted = pulled(&runtime, "trusted", &image).await;
    assert!(matches!(trusted, Ok(ImageOrigin::Pulled(_))), "{trusted:?}");
}

#[tokio::test]
async fn a_registry_that_never_answers_holds_back_no_other_and_is_given_up_in_time() {
    let Some(with_registry) = with_image("answers").await else {
        return;
    };
    let WithRegistry {
        registry: _registry,
        containerd,
        image,
        runtime,
    } = with_registry;
    // The kernel accepts the connections.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hung = |name: &str| format!("{}/{name}:1", silent.local_addr().unwrap());
    for name in ["a", "b", "c", "d", "e"] {
        let (reason, _) = start(&runtime, name, &hung(name)).await.unwrap_err();
        assert_eq!(reason, "ContainerCreating");
    }
    let other = pulled(&runtime, "other", &image).await;
    assert!(matches!(other, Ok(ImageOrigin::Pulled(_))), "{other:?}");
    let (reason, _) = start(&runtime, "a", &hung("a")).await.unwrap_err();
    assert_eq!(reason, "ContainerCreating");
    drop(runtime);
    let runtime = open_with(&containerd, &Woken::default(), |service| {
        service.pull_timeout = Duration::from_secs(1);
    })
    .await;
    let given_up = failure(&runtime, "f", &hung("f")).await;
    assert_eq!(given_up, "no answer within 1 s");
}
