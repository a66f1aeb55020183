//! Encrypted values: what the store below has, and the cache without a key.

use std::sync::Arc;
use std::time::Duration;

use setpoint_encryption::{Configuration, Encryption};
use setpoint_proto::core::ConfigMap;
use setpoint_store::cache::{AtLeast, Cache, Filter, Settings};
use setpoint_store::contract::objects::{config_map, enveloped, key_of, kind, without_identity};
use setpoint_store::{Encrypted, Entry, Form, Memory, Range, Store, Write, keys};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(60);

/// Returns a configuration by which ConfigMaps, or Secrets, are encrypted by these keys of AES-GCM.
fn configuration(resource: &str, names: &[&str]) -> Configuration {
    let secret = |name: &str| match name {
        "old" => "MTIzNDU2Nzg5MDEyMzQ1Ng==",
        _ => "QUJDREVGR0hJSktMTU5PUA==",
    };
    let keys = names.iter();
    let keys = keys.map(|name| format!("{{name: {name}, secret: {}}}", secret(name)));
    let keys: Vec<_> = keys.collect();
    let text = format!(
        "{{apiVersion: apiserver.config.k8s.io/v1, kind: EncryptionConfiguration, \
         resources: [{{resources: [{resource}], providers: [{{aesgcm: {{keys: [{}]}}}}]}}]}}",
        keys.join(", ")
    );
    Configuration::read(text.as_bytes()).unwrap()
}

struct Scene {
    raw: Memory,
    encryption: Arc<Encryption>,
    store: Arc<dyn Store>,
}

impl Scene {
    fn new(configuration: &Configuration) -> Self {
        let (raw, encryption) = (Memory::default(), Arc::new(Encryption::new(configuration)));
        let store = Arc::new(Encrypted::new(Arc::new(raw.clone()), encryption.clone()));
        Self {
            raw,
            encryption,
            store,
        }
    }

    async fn create(&self, name: &str) -> Write {
        let value = enveloped(&config_map(name, "the password"), None);
        let write = Write::create(key_of::<ConfigMap>(name), value);
        self.store.commit(write.clone()).await.unwrap();
        write
    }

    async fn entry(&self, name: &str) -> Entry {
        let key = key_of::<ConfigMap>(name);
        self.store.get(&key).await.unwrap().unwrap()
    }

    async fn stored(&self, key: &str) -> Entry {
        self.raw.get(key).await.unwrap().unwrap()
    }
}

fn contains(value: &[u8], text: &str) -> bool {
    value
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test]
async fn the_store_below_has_no_plain_text() {
    let scene = Scene::new(&configuration("'*.*'", &["old"]));
    let write = scene.create("web").await;
    let stored = scene.stored(&write.key).await.value;
    assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:old:"), "{stored:?}");
    assert!(!contains(&stored, "password") && !contains(&stored, "ConfigMap"));
    let entry = scene.entry("web").await;
    assert_eq!(
        (entry.value, entry.form),
        (write.value.unwrap(), Form::Current)
    );
}

#[tokio::test]
async fn the_keys_that_sign_tokens_are_encrypted_as_secrets() {
    let scene = Scene::new(&configuration("secrets", &["old"]));
    let sign = |key: &str| Write::create(key, "a private key".into());
    let write = sign(keys::TOKEN_KEY).with_preconditions([setpoint_store::Precondition {
        key: keys::TOKEN_KEYS.into(),
        expect: setpoint_store::Expect::Absent,
        put: Some("a private key".into()),
    }]);
    scene.store.commit(write).await.unwrap();
    for key in [keys::TOKEN_KEY, keys::TOKEN_KEYS] {
        assert!(
            !contains(&scene.stored(key).await.value, "private"),
            "{key}"
        );
        let entry = scene.store.get(key).await.unwrap().unwrap();
        assert_eq!(entry.value, "a private key");
    }
}

#[tokio::test]
async fn a_value_copied_to_the_key_of_another_object_is_refused() {
    let scene = Scene::new(&configuration("configmaps", &["old"]));
    let mine = scene.create("mine").await;
    let yours = scene.create("yours").await;
    let (from, to) = (
        scene.stored(&yours.key).await,
        scene.stored(&mine.key).await,
    );
    let copy = Write::update(mine.key, to.revision, from.value);
    scene.raw.commit(copy).await.unwrap();
    let Form::Untransformable(why) = scene.entry("mine").await.form else {
        panic!("it was accepted");
    };
    assert_eq!(&*why, "message authentication failed");
}

/// The cache learns of a key that it lacked, without a write.
#[tokio::test(start_paused = true)]
async fn without_its_key_a_value_is_an_error_and_with_it_readable_again() {
    let scene = Scene::new(&configuration("configmaps", &["old"]));
    scene.create("web").await;
    let cache = Cache::start(scene.store.clone(), Settings::default());
    timeout(LONG, cache.synced()).await.unwrap();
    let key = setpoint_model::Key::new("production", "web");
    let get = || cache.get(kind::<ConfigMap>(), &key, AtLeast::Newest);
    let all = Filter::all(kind::<ConfigMap>(), "");
    assert!(get().await.unwrap().is_some());

    scene
        .encryption
        .replace(&configuration("configmaps", &["new"]))
        .await
        .unwrap();
    let error = loop {
        match get().await {
            Err(error) => break error,
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let path = "/registry/configmaps/production/web";
    let start =
        format!("Internal error occurred: StorageError: corrupt object, Code: 7, Key: {path}, ");
    assert!(error.message.starts_with(&start), "{error}");
    let end = ": no matching key was found for the provided AES transformer";
    assert!(
        error
            .message
            .contains("data from the storage is not transformable"),
        "{error}"
    );
    assert!(error.message.ends_with(end), "{error}");
    scene.create("readable").await;
    let list = cache.list(&all, AtLeast::Newest).await.unwrap();
    assert_eq!((list.items.len(), list.unreadable.len()), (1, 1));
    assert_eq!(list.unreadable[0].key, key);

    scene
        .encryption
        .replace(&configuration("configmaps", &["new", "old"]))
        .await
        .unwrap();
    while get().await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(get().await.unwrap().is_some());
    assert_eq!(scene.entry("web").await.form, Form::Stale);
    assert_eq!(scene.entry("readable").await.form, Form::Current);
}

#[tokio::test]
async fn a_conflict_and_the_history_are_in_plain_text() {
    use futures::StreamExt as _;
    let scene = Scene::new(&configuration("configmaps", &["old"]));
    let write = scene.create("web").await;
    let plain = write.value.clone().unwrap();
    let again = Write::create(write.key.clone(), plain.clone());
    let Err(setpoint_store::Error::Conflict {
        current: Some(current),
    }) = scene.store.commit(again).await
    else {
        panic!("it was created twice");
    };
    assert_eq!(without_identity(&current.value), without_identity(&plain));
    let past = scene.store.get_at(&write.key, current.revision).await;
    assert_eq!(past.unwrap().unwrap().value, plain);
    let mut changes = scene
        .store
        .watch_key(&write.key, setpoint_model::Revision::from_raw(1));
    assert_eq!(
        changes.next().await.unwrap().unwrap().value,
        Some(plain.clone())
    );
    let page = scene.store.list(Range::all(keys::ROOT)).await.unwrap();
    assert_eq!(page.entries[0].value, plain);
    let keys_only = Range {
        keys_only: true,
        ..Range::all(keys::ROOT)
    };
    let page = scene.store.list(keys_only).await.unwrap();
    assert_eq!(page.entries[0].form, Form::Current);
}
