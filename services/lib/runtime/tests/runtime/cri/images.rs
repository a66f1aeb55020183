//! Pulls of images from a registry of this machine.

use setpoint_runtime::contract::{POLL_INTERVAL, TIMEOUT, Woken, container, sandbox, uid};
use setpoint_runtime::cri::{Cri, Service, Verification};
use setpoint_runtime::{
    ContainerConfig, Error, ImageOrigin, Keyring, Pull, Runtime as _, SecretRef,
};
use setpoint_testkit::{ImageRegistry, REGISTRY_USER};
use tokio::time::{sleep, timeout};

use super::fixture::{Containerd, WithRegistry, open};

/// Returns the reason for which a container does not start; empty if it does.
async fn reason(runtime: &Cri, config: ContainerConfig) -> &'static str {
    let image = config.image.clone();
    match runtime.start(config).await {
        Ok(_) => "",
        Err(Error::Image { reason, .. }) => reason,
        Err(other) => panic!("{image}: {other:?}"),
    }
}

/// Returns the configuration of a container of this name and image. Each has a backoff of its own.
fn named(name: &str, image: &str, pull: Pull, keyring: &Keyring) -> ContainerConfig {
    let mut config = container(0, &["true"]);
    config.id.name = name.into();
    config.image = image.into();
    config.pull = pull;
    config.keyring = keyring.clone();
    config
}

/// Waits for the end of a pull, and returns the reason then.
async fn after_pull(runtime: &Cri, config: &ContainerConfig) -> &'static str {
    let ended = async {
        loop {
            match reason(runtime, config.clone()).await {
                "ContainerCreating" => sleep(POLL_INTERVAL).await,
                reason => return reason,
            }
        }
    };
    timeout(TIMEOUT, ended).await.expect("the pull ends")
}

/// Returns the credentials in a Secret of the namespace that has the name of its user.
fn keyring(registry: &str, user: &str, password: &str) -> Keyring {
    let config = serde_json::json!({
        "auths": { registry: { "username": user, "password": password } },
    });
    let mut keyring = Keyring::default();
    let secret = SecretRef {
        namespace: user.into(),
        name: "pull".into(),
        uid: format!("uid-of-{user}"),
    };
    let added = keyring.add_config(config.to_string().as_bytes(), &secret);
    added.unwrap();
    keyring
}

#[tokio::test]
async fn images_that_are_absent_invalid_or_never_pulled_have_the_kubelets_reasons() {
    let Some(containerd) = Containerd::start() else {
        return;
    };
    let runtime = open(&containerd, &Woken::default()).await;
    runtime.run_sandbox(sandbox()).await.unwrap();
    // Nothing listens there.
    let (absent, none) = ("127.0.0.1:1/none:1", Keyring::default());
    let first = async |image, pull| reason(&runtime, named("main", image, pull, &none)).await;
    assert_eq!(
        first("no Image", Pull::IfNotPresent).await,
        "InvalidImageName"
    );
    assert_eq!(first(absent, Pull::Never).await, "ErrImageNeverPull");
    let config = named("main", absent, Pull::IfNotPresent, &none);
    assert_eq!(after_pull(&runtime, &config).await, "ErrImagePull");
    assert_eq!(after_pull(&runtime, &config).await, "ImagePullBackOff");
}

/// Returns a runtime, and an image in a registry that only [`REGISTRY_USER`] may pull.
async fn with_private_image() -> Option<WithRegistry> {
    WithRegistry::start(ImageRegistry::guarded(), Containerd::start, "private").await
}

#[tokio::test]
async fn a_private_image_is_pulled_by_the_credentials_of_its_pod_and_no_others() {
    let Some(with_registry) = with_private_image().await else {
        return;
    };
    let WithRegistry {
        registry,
        containerd,
        image,
        runtime,
    } = with_registry;
    let (host, (user, password)) = (registry.address(), REGISTRY_USER);
    let right = keyring(host, user, password);
    for (name, refused) in [
        ("anonymous", Keyring::default()),
        ("wrong", keyring(host, user, "guessed")),
        ("elsewhere", keyring("127.0.0.1:1", user, password)),
    ] {
        let config = named(name, &image, Pull::IfNotPresent, &refused);
        assert_eq!(
            after_pull(&runtime, &config).await,
            "ErrImagePull",
            "{name}"
        );
    }
    let config = named("right", &image, Pull::IfNotPresent, &right);
    assert_eq!(reason(&runtime, config.clone()).await, "ContainerCreating");
    let pulled = async {
        loop {
            match runtime.start(config.clone()).await {
                Ok(origin) => return origin,
                Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    };
    let origin = timeout(TIMEOUT, pulled).await.unwrap();
    assert!(
        matches!(origin, ImageOrigin::Pulled(pulled) if pulled.bytes > 0),
        "{origin:?}"
    );
    let annotations = containerd.ctr(&["containers", "list"]);
    let listed = String::from_utf8_lossy(&annotations.stdout).into_owned();
    assert!(
        listed.contains(&image) && !listed.contains(password),
        "{listed}"
    );
}

/// Returns how a container gets its image, or the reason why not.
async fn origin(runtime: &Cri, config: &ContainerConfig) -> String {
    let ended = async {
        loop {
            match runtime.start(config.clone()).await {
                Ok(ImageOrigin::Pulled(_)) => return "pulled".to_owned(),
                Ok(origin) => return format!("{origin:?}"),
                Err(Error::Image {
                    reason: "ContainerCreating",
                    ..
                }) => {
                    sleep(POLL_INTERVAL).await;
                }
                Err(Error::Image { reason, .. }) => return reason.to_owned(),
                Err(other) => panic!("{other:?}"),
            }
        }
    };
    timeout(TIMEOUT, ended)
        .await
        .expect("the image is decided on")
}

#[tokio::test]
async fn an_image_that_was_pulled_with_credentials_is_for_pods_that_have_them_and_no_others() {
    let Some(with_registry) = with_private_image().await else {
        return;
    };
    let WithRegistry {
        registry,
        containerd,
        image,
        runtime,
    } = with_registry;
    let (host, (user, password)) = (registry.address(), REGISTRY_USER);
    let (none, right) = (Keyring::default(), keyring(host, user, password));
    let wrong = keyring(host, "stranger", "guessed");
    let get = async |runtime: &Cri, name: &str, pull, keyring: &Keyring| {
        origin(runtime, &named(name, &image, pull, keyring)).await
    };
    let if_absent = Pull::IfNotPresent;
    assert_eq!(get(&runtime, "owner", if_absent, &right).await, "pulled");
    assert_eq!(
        get(&runtime, "again", if_absent, &right).await,
        "Accessible"
    );
    assert_eq!(
        get(&runtime, "never", Pull::Never, &right).await,
        "Accessible"
    );
    drop(runtime);
    // An agent that starts again knows it as well.
    let runtime = open(&containerd, &Woken::default()).await;
    assert_eq!(get(&runtime, "a", if_absent, &none).await, "ErrImagePull");
    assert_eq!(get(&runtime, "b", if_absent, &wrong).await, "ErrImagePull");
    let hidden = get(&runtime, "c", Pull::Never, &wrong).await;
    assert_eq!(hidden, "ErrImageNeverPull");
    assert_eq!(get(&runtime, "d", if_absent, &right).await, "Accessible");
    // What this agent has not pulled is for everyone.
    let preloaded = named("e", setpoint_runtime::contract::IMAGE, if_absent, &none);
    assert_eq!(origin(&runtime, &preloaded).await, "Accessible");
    drop(runtime);
    let mut settings = containerd.settings();
    settings.image_pull_credentials_verification_policy = Verification::NeverVerify;
    let service = Service::connect(&settings).await.unwrap();
    let (state, node) = (containerd.state(), uid());
    let wake = Woken::default().wake();
    let open = Cri::open(service, &settings, &node, &state, wake, |_| {});
    let runtime = open.await.unwrap();
    assert_eq!(get(&runtime, "f", if_absent, &none).await, "Accessible");
}
