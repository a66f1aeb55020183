//! A gateway over encrypted values: lost keys, deletions meanwhile, and objects that are stored anew.

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_encryption::{Configuration, Encryption};
use setpoint_gateway::in_process;
use setpoint_store::{Encrypted, Memory, Store as _, cache};

use super::api::Api;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const WEB: &str = "/api/v1/namespaces/default/secrets/web";
const WEB_KEY: &str = "/registry/secrets/default/web";
const BOXES: &str = "/apis/locked.example.com/v1/namespaces/default/boxes";
const BOX_KEY: &str = "/registry/locked.example.com/boxes/default/a";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const IGNORE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential=true";

/// Returns a configuration by which Secrets and Boxes are encrypted by these keys of AES-GCM.
fn configuration(names: &[&str]) -> Configuration {
    let keys = names.iter().map(|name| {
        let secret = match *name {
            "old" => "MTIzNDU2Nzg5MDEyMzQ1Ng==",
            _ => "QUJDREVGR0hJSktMTU5PUA==",
        };
        json!({ "name": name, "secret": secret })
    });
    let document = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [{
            "resources": ["secrets", "boxes.locked.example.com"],
            "providers": [{ "aesgcm": { "keys": keys.collect::<Vec<_>>() } }],
        }],
    });
    Configuration::read(document.to_string().as_bytes()).unwrap()
}

struct Scene {
    api: Api,
    raw: Memory,
    encryption: Arc<Encryption>,
}

impl Scene {
    /// Starts a gateway whose values are encrypted by the key `old`, with the Secret `web`.
    async fn start() -> Self {
        let raw = Memory::default();
        let encryption = Arc::new(Encryption::new(&configuration(&["old"])));
        let store = Encrypted::new(Arc::new(raw.clone()), encryption.clone());
        let registry = in_process::registry(Arc::new(store), cache::Settings::default());
        let scene = Self {
            api: Api::over(registry.await).await,
            raw,
            encryption,
        };
        let secret =
            json!({ "metadata": { "name": "web" }, "stringData": { "word": "the password" } });
        scene.api.post(SECRETS, secret).await.ok();
        scene
    }

    /// Uses these keys, and waits until the answer for an object has this code.
    async fn use_keys(&self, names: &[&str], path: &str, code: u16) -> Value {
        self.encryption
            .replace(&configuration(names))
            .await
            .unwrap();
        let wanted = |reply: &super::api::Reply| reply.code == code;
        self.api.eventually(path, wanted).await.json()
    }

    async fn stored(&self, key: &str) -> Option<Vec<u8>> {
        let entry = self.raw.get(key).await.unwrap();
        entry.map(|entry| entry.value.to_vec())
    }

    async fn is_sealed_by(&self, key: &str, name: &str) -> bool {
        let prefix = format!("k8s:enc:aesgcm:v1:{name}:");
        let stored = self.stored(key).await;
        stored.is_some_and(|value| value.starts_with(prefix.as_bytes()))
    }
}

#[tokio::test]
async fn a_lost_key_is_a_clear_error_and_loses_nothing() {
    let scene = Scene::start().await;
    assert!(scene.is_sealed_by(WEB_KEY, "old").await);
    let before = scene.stored(WEB_KEY).await;
    let status = scene.use_keys(&["new"], WEB, 500).await;
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("data from the storage is not transformable"),
        "{message}"
    );
    assert!(message.contains(WEB_KEY), "{message}");
    let list = scene.api.get(SECRETS).await;
    assert_eq!(list.code, 500);
    let list = list.json();
    assert_eq!(list["reason"], "StorageReadError");
    assert_eq!(list["details"]["causes"][0]["field"], WEB_KEY);
    // Other objects of the kind are served.
    let other = json!({ "metadata": { "name": "other" } });
    scene.api.post(SECRETS, other).await.ok();
    scene.api.get(&format!("{SECRETS}/other")).await.ok();
    // No write touches it: neither another one of that name, nor a change, nor a deletion.
    let again = json!({ "metadata": { "name": "web" } });
    scene
        .api
        .post(SECRETS, again.clone())
        .await
        .refused(409, "AlreadyExists");
    for reply in [
        scene.api.put(WEB, again.clone()).await,
        scene.api.patch(WEB, "merge-patch+json", again).await,
        scene.api.delete(WEB).await,
    ] {
        assert_eq!(reply.code, 500, "{}", reply.json());
        assert!(
            reply.json()["message"]
                .as_str()
                .unwrap()
                .contains("not transformable")
        );
    }
    assert_eq!(scene.stored(WEB_KEY).await, before);

    let web = scene.use_keys(&["new", "old"], WEB, 200).await;
    assert_eq!(web["data"]["word"], "dGhlIHBhc3N3b3Jk");
}

#[tokio::test]
async fn an_object_without_its_key_is_deleted_only_by_the_option_for_that() {
    let scene = Scene::start().await;
    scene.use_keys(&["new"], WEB, 500).await;
    scene.api.delete(&format!("{WEB}?{IGNORE}")).await.ok();
    assert_eq!(scene.stored(WEB_KEY).await, None);
}

/// The objects of a definition that is deleted are deleted below admission, those that are corrupt, too. One whose key
/// is missing is not corrupt.
#[tokio::test]
async fn a_definition_stays_until_its_objects_can_be_decrypted() {
    let scene = Scene::start().await;
    let _background = scene.api.run_background();
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "metadata": { "name": "boxes.locked.example.com" },
        "spec": {
            "group": "locked.example.com", "scope": "Namespaced",
            "names": { "plural": "boxes", "singular": "box", "kind": "Box" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": open } }],
        },
    });
    scene.api.post(DEFINITIONS, definition).await.ok();
    scene.api.eventually(BOXES, |reply| reply.code == 200).await;
    let object = json!({
        "apiVersion": "locked.example.com/v1", "kind": "Box", "metadata": { "name": "a" },
    });
    scene.api.post(BOXES, object).await.ok();
    assert!(scene.is_sealed_by(BOX_KEY, "old").await);
    scene.use_keys(&["new"], &format!("{BOXES}/a"), 500).await;
    let definition = format!("{DEFINITIONS}/boxes.locked.example.com");
    scene.api.delete(&definition).await.ok();
    let failed = |reply: &super::api::Reply| {
        let text = reply.json()["status"]["conditions"].to_string();
        text.contains("not transformable")
    };
    scene.api.eventually(&definition, failed).await;
    assert!(scene.is_sealed_by(BOX_KEY, "old").await);

    scene
        .encryption
        .replace(&configuration(&["new", "old"]))
        .await
        .unwrap();
    scene
        .api
        .eventually(&definition, |reply| reply.code == 404)
        .await;
    assert_eq!(scene.stored(BOX_KEY).await, None);
}

#[tokio::test]
async fn an_update_that_changes_nothing_stores_an_object_anew_once() {
    let scene = Scene::start().await;
    let old = scene.api.get(WEB).await.ok();
    let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
    let same = scene.api.put(WEB, old.clone()).await.ok();
    assert_eq!(revision(&same), revision(&old), "it is as it would be now");
    scene.use_keys(&["new", "old"], WEB, 200).await;
    let new = scene.api.put(WEB, old.clone()).await.ok();
    assert_ne!(revision(&new), revision(&old));
    assert!(scene.is_sealed_by(WEB_KEY, "new").await);
    let same = scene.api.put(WEB, new.clone()).await.ok();
    assert_eq!(revision(&same), revision(&new));
    let web = scene.use_keys(&["new"], WEB, 200).await;
    assert_eq!(web["data"]["word"], "dGhlIHBhc3N3b3Jk");
}
