//! Encryption by a provider of keys outside of the process.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use setpoint_encryption::kms::testing::{Mode, TestKms};
use setpoint_encryption::{Configuration, Encryption, Opened};
use tempfile::TempDir;

const SECRETS: (&str, &str) = ("", "secrets");
const AT: &str = "/registry/secrets/default/web";
const PREFIX: &[u8] = b"k8s:enc:kms:v2:vault:";

fn configuration(socket: &Path, timeout: &str) -> Configuration {
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, resources: \
         [{{resources: [secrets], providers: [{{kms: {{apiVersion: v2, name: vault, timeout: {timeout}, \
         endpoint: 'unix://{}'}}}}, {{identity: {{}}}}]}}]}}",
        socket.display()
    );
    Configuration::read(text.as_bytes()).unwrap()
}

struct Scene {
    kms: TestKms,
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kms = TestKms::start(&directory.path().join("kms"));
        Self { kms, directory }
    }

    /// Returns the encryption of a process that starts.
    async fn process(&self) -> Encryption {
        self.process_within("1m").await
    }

    async fn process_within(&self, timeout: &str) -> Encryption {
        let socket = self.directory.path().join("kms");
        let encryption = Encryption::new(&configuration(&socket, timeout));
        encryption.start().await;
        encryption
    }
}

fn value() -> Bytes {
    Bytes::from_static(b"k8s\0 the password")
}

fn seal(encryption: &Encryption) -> Result<Bytes, String> {
    let sealed = encryption.seal(SECRETS, AT, &value());
    sealed.map_err(|error| error.to_string())
}

async fn open(encryption: &Encryption, stored: &Bytes) -> Result<Opened, String> {
    let opened = encryption.open(SECRETS, AT, stored).await;
    opened.map_err(|error| error.to_string())
}

fn opened(stale: bool) -> Result<Opened, String> {
    let value = value();
    Ok(Opened { value, stale })
}

#[tokio::test]
async fn the_provider_is_asked_once_for_a_seed_and_once_by_another_process() {
    let scene = Scene::new();
    let (one, other) = (scene.process().await, scene.process().await);
    assert_eq!(scene.kms.calls(), (2, 0));
    let mut stored = Vec::new();
    for _ in 0..10 {
        let sealed = seal(&one).unwrap();
        assert!(sealed.starts_with(PREFIX), "{sealed:?}");
        assert!(!sealed.windows(8).any(|part| part == b"password"));
        stored.push(sealed);
    }
    for sealed in &stored {
        assert_eq!(open(&one, sealed).await, opened(false));
        assert_eq!(open(&other, sealed).await, opened(false));
    }
    assert_eq!(scene.kms.calls(), (2, 1));
    assert_ne!(stored[0], stored[1]);
}

#[tokio::test]
async fn a_value_copied_to_another_key_is_refused() {
    let scene = Scene::new();
    let encryption = scene.process().await;
    let stored = seal(&encryption).unwrap();
    let copied = encryption.open(SECRETS, "/registry/secrets/default/other", &stored);
    let error = copied.await.unwrap_err().to_string();
    assert_eq!(error, "message authentication failed");
}

/// The provider has another key: the next status finds that, and values of the former key are stale.
#[tokio::test(start_paused = true)]
async fn values_of_another_key_of_the_provider_are_stale() {
    let scene = Scene::new();
    let encryption = scene.process().await;
    let stored = seal(&encryption).unwrap();
    scene.kms.set_key("2");
    while open(&encryption, &stored).await == opened(false) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(open(&encryption, &stored).await, opened(true));
    let anew = seal(&encryption).unwrap();
    assert_eq!(open(&encryption, &anew).await, opened(false));
    assert_eq!(scene.kms.calls().0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_hangs_is_waited_for_once_and_what_is_known_stays_usable() {
    let scene = Scene::new();
    let (writer, known) = (scene.process().await, seal(&scene.process().await).unwrap());
    let reader = scene.process_within("300ms").await;
    let (one, other) = (
        seal(&writer).unwrap(),
        seal(&scene.process().await).unwrap(),
    );
    assert_eq!(open(&reader, &known).await, opened(false));
    scene.kms.set_mode(Mode::Hangs);
    let mut changes = reader.changes();
    let error = open(&reader, &one).await.unwrap_err();
    assert_eq!(
        error,
        "failed to decrypt DEK, error: it did not answer within 300ms"
    );
    // It is not asked again, whoever else would need it.
    let calls = scene.kms.calls();
    for sealed in [&one, &other].into_iter().cycle().take(100) {
        open(&reader, sealed).await.unwrap_err();
    }
    assert_eq!(scene.kms.calls(), calls);
    // What is known can be opened, and values can be sealed.
    assert_eq!(open(&reader, &known).await, opened(false));
    let own = seal(&reader).unwrap();
    assert_eq!(open(&reader, &own).await, opened(false));
    let mut health = reader.health();
    let problem = health.wait_for(Result::is_err).await.unwrap().clone();
    assert!(
        problem
            .unwrap_err()
            .starts_with("kmsv2 Provider vault is not healthy, error: ")
    );
    // Once it works, those that could not be opened are worth another look.
    scene.kms.set_mode(Mode::Works);
    changes.changed().await.unwrap();
    assert_eq!(open(&reader, &one).await, opened(false));
    assert!(reader.health().borrow().is_ok());
}

/// As upstream: a seed is used for three minutes after the last good answer.
#[tokio::test(start_paused = true)]
async fn values_are_sealed_for_a_time_without_the_provider_and_then_no_longer() {
    let scene = Scene::new();
    let encryption = scene.process().await;
    scene.kms.set_mode(Mode::IsIll);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let stored = seal(&encryption).unwrap();
    tokio::time::sleep(Duration::from_secs(200)).await;
    let error = seal(&encryption).unwrap_err();
    assert!(
        error.starts_with(
            "kmsv2 Provider vault is not healthy, error: encryptedDEKSource with keyID hash"
        ),
        "{error}"
    );
    assert!(
        error.ends_with("got unexpected healthz status: it is ill"),
        "{error}"
    );
    assert_eq!(open(&encryption, &stored).await, opened(false));
    scene.kms.set_mode(Mode::Works);
    while seal(&encryption).is_err() {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn a_provider_may_come_after_the_process_but_not_after_a_configuration_that_replaces_another()
{
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("kms");
    let encryption = Encryption::new(&configuration(&socket, "1s"));
    encryption.start().await;
    assert!(
        seal(&encryption)
            .unwrap_err()
            .starts_with("kmsv2 Provider vault is not healthy")
    );
    let plain = Encryption::default();
    let refused = plain
        .replace(&configuration(&socket, "1s"))
        .await
        .unwrap_err();
    assert!(
        refused.starts_with("kmsv2 Provider vault is not healthy"),
        "{refused}"
    );
    assert_eq!(seal(&plain), Ok(value()));
    let _kms = TestKms::start(&socket);
    plain.replace(&configuration(&socket, "1s")).await.unwrap();
    assert!(seal(&plain).unwrap().starts_with(PREFIX));
}
