//! A runtime whose disk is full.

use setpoint_runtime::contract::{POLL_INTERVAL, TIMEOUT, container, id, pod};
use setpoint_runtime::cri::Cri;
use setpoint_runtime::{ContainerConfig, Error, ImageOrigin, Runtime as _, State};
use setpoint_testkit::ImageRegistry;
use tokio::time::{sleep, timeout};

use super::fixture::{Containerd, WithRegistry};
use super::until;

/// The size of the disk in MiB: enough for the images of the test.
const SIZE: u32 = 64;
/// The kernel's words.
const FULL: &str = "no space left on device";

/// Starts a container, once its image is pulled; with the reason and the message if it cannot.
async fn started(runtime: &Cri, config: &ContainerConfig) -> Result<ImageOrigin, (String, String)> {
    let ended = async {
        loop {
            match runtime.start(config.clone()).await {
                Err(Error::Image {
                    reason: "ContainerCreating",
                    ..
                }) => {
                    sleep(POLL_INTERVAL).await;
                }
                Err(Error::Image {
                    reason, message, ..
                }) => {
                    return Err((reason.to_owned(), message));
                }
                Err(error) => return Err(("refused".to_owned(), error.to_string())),
                Ok(origin) => return Ok(origin),
            }
        }
    };
    timeout(TIMEOUT, ended).await.expect("the pull ends")
}

/// Returns whether a container has ended well.
fn has_ended(runtime: &Cri, attempt: u32) -> bool {
    matches!(runtime.state(&id(attempt)), Some(State::Exited(exit)) if exit.code == 0)
}

#[tokio::test]
async fn on_a_full_disk_nothing_new_starts_what_runs_goes_on_and_all_starts_once_there_is_room() {
    let containerd = || Containerd::start_on(SIZE);
    let with_registry = WithRegistry::start(ImageRegistry::start(), containerd, "large").await;
    let Some(with_registry) = with_registry else {
        return;
    };
    let WithRegistry {
        registry: _registry,
        containerd,
        image,
        runtime,
    } = with_registry;
    let runs = container(0, &["sleep", "1000"]);
    runtime.start(runs).await.unwrap();
    until(|| matches!(runtime.state(&id(0)), Some(State::Running { .. }))).await;
    containerd.fill_disk();
    let mut pulls = container(0, &["true"]);
    pulls.id.name = "pulls".into();
    pulls.image.clone_from(&image);
    let (reason, message) = started(&runtime, &pulls).await.unwrap_err();
    assert_eq!(reason, "ErrImagePull", "{message}");
    assert!(message.contains(FULL), "{message}");
    let creates = container(1, &["true"]);
    let (reason, message) = started(&runtime, &creates).await.unwrap_err();
    assert_eq!(reason, "refused", "{message}");
    assert!(message.contains(FULL), "{message}");
    assert_eq!(runtime.state(&id(1)), None);
    // It does not take the Pod with it, and the runtime is asked for all that it has.
    let containers = runtime.sandboxes(&pod())[0].containers.clone();
    assert!(runtime.sandboxes(&pod())[0].ready && containers.len() == 1);
    assert!(matches!(containers[0].state, State::Running { .. }));
    containerd.free_disk();
    started(&runtime, &creates).await.unwrap();
    until(|| has_ended(&runtime, 1)).await;
    pulls.id.name = "again".into();
    let origin = started(&runtime, &pulls).await.unwrap();
    assert!(matches!(origin, ImageOrigin::Pulled(_)), "{origin:?}");
    until(|| matches!(runtime.state(&pulls.id), Some(State::Exited(exit)) if exit.code == 0)).await;
    assert!(matches!(runtime.state(&id(0)), Some(State::Running { .. })));
}
