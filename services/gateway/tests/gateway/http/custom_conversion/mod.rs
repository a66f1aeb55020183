//! Custom objects that a webhook converts between versions.

mod faults;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use setpoint_codec::{envelope, kinds};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_store::{Memory, Store as _, Write, cache};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::api::{Api, Reply};
use super::webhook::Webhook;

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/endpoints.stable.example.com";
const V1: &str = "/apis/stable.example.com/v1/namespaces/default/endpoints";
const V2: &str = "/apis/stable.example.com/v2/namespaces/default/endpoints";
const FOLDER: &str = "/registry/stable.example.com/endpoints/default";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
/// The beginning of each error of a conversion.
const PREFIX: &str = "conversion webhook for stable.example.com/v1, Kind=Endpoint ";
/// Longer than any call of a webhook that answers.
const LONG: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);

/// A change of the answer of a webhook.
type Change = fn(&mut Value);

/// A gateway whose objects a webhook converts.
struct Plane {
    api: Api,
    webhook: Webhook,
    store: Arc<Memory>,
    registry: Arc<Registry>,
}

fn version(name: &str, is_stored: bool, fields: Value) -> Value {
    let mut properties = json!({
        "spec": { "type": "object", "properties": { "replicas": { "type": "integer" } } },
        "status": {
            "type": "object",
            "properties": { "phase": { "type": "string" }, "replicas": { "type": "integer" } },
        },
    });
    let fields = fields.as_object().unwrap().clone();
    let selectable = fields
        .keys()
        .map(|name| json!({ "jsonPath": format!(".{name}") }));
    let selectable: Vec<_> = selectable.collect();
    properties.as_object_mut().unwrap().extend(fields);
    json!({
        "name": name,
        "served": true,
        "storage": is_stored,
        "selectableFields": selectable,
        "schema": { "openAPIV3Schema": { "type": "object", "properties": properties } },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
        },
    })
}

fn definition(client_config: Value, stored: &str) -> Value {
    let text = json!({ "type": "string" });
    let first = json!({ "hostPort": text });
    let second = json!({
        "host": text,
        "port": { "type": "string", "pattern": "^[0-9]+$" },
        "protocol": { "type": "string", "default": "tcp" },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "endpoints.stable.example.com" },
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": { "plural": "endpoints", "singular": "endpoint", "kind": "Endpoint" },
            "versions": [
                version("v1", stored == "v1", first),
                version("v2", stored == "v2", second),
            ],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": client_config,
                    "conversionReviewVersions": ["v7", "v1", "v1beta1"],
                },
            },
        },
    })
}

fn first(name: &str, host_port: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "Endpoint",
        "metadata": { "name": name },
        "hostPort": host_port,
    })
}

fn second(name: &str, host: &str, port: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v2",
        "kind": "Endpoint",
        "metadata": { "name": name },
        "host": host,
        "port": port,
    })
}

impl Plane {
    /// Starts a gateway that stores objects in `v1`.
    async fn start() -> Self {
        Self::with(LONG, Webhook::by_url).await
    }

    async fn with(limit: Duration, client_config: impl FnOnce(&Webhook) -> Value) -> Self {
        let store = Arc::new(Memory::default());
        let timed = |registry: Registry| registry.with_conversion_timeout(limit);
        let registry =
            in_process::registry_with(store.clone(), cache::Settings::default(), timed).await;
        let api = Api::over(registry.clone()).await;
        let webhook = Webhook::start().await;
        api.define(definition(client_config(&webhook), "v1")).await;
        Self {
            api,
            webhook,
            store,
            registry,
        }
    }

    /// Creates an object in `v1`.
    async fn create(&self, name: &str, host_port: &str) -> Value {
        self.api.post(V1, first(name, host_port)).await.ok()
    }

    /// Returns the bytes of a stored object.
    async fn stored(&self, name: &str) -> Vec<u8> {
        let entry = self.store.get(&format!("{FOLDER}/{name}")).await.unwrap();
        entry.expect("it is stored").value.to_vec()
    }

    /// Returns the apiVersion that an object is stored in.
    async fn stored_version(&self, name: &str) -> String {
        let text = String::from_utf8_lossy(&self.stored(name).await).into_owned();
        let (_, version) = text.split_once(r#""apiVersion":""#).unwrap();
        version.split('"').next().unwrap().to_owned()
    }

    /// Changes the definition.
    async fn redefine(&self, change: impl FnOnce(&mut Value)) {
        let mut definition = self.api.get(DEFINITION).await.ok();
        change(&mut definition);
        self.api.put(DEFINITION, definition).await.ok();
        self.api.get(DEFINITION).await.ok();
    }

    /// Stores new objects in `v2` from now on.
    async fn store_second(&self) {
        self.redefine(|definition| {
            definition["spec"]["versions"][0]["storage"] = false.into();
            definition["spec"]["versions"][1]["storage"] = true.into();
        })
        .await;
    }

    async fn apply(&self, collection: &str, manager: &str, object: Value) -> Reply {
        let name = object["metadata"]["name"].as_str().unwrap();
        let url = format!("{collection}/{name}?fieldManager={manager}");
        let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
        self.api.send(request, object.to_string()).await
    }

    /// Asserts that an object cannot be read in `v2`, and that this does not change it. Returns the error.
    async fn fails(&self, name: &str) -> String {
        let before = self.stored(name).await;
        let path = format!("{V2}/{name}");
        let message = self.api.get(&path).await.refused(500, "InternalError");
        let patch = json!({ "port": "9" });
        let patched = self.api.patch(&path, "merge-patch+json", patch).await;
        patched.refused(500, "InternalError");
        let created = self.api.post(V2, second("new", "n", "1")).await;
        created.refused(500, "InternalError");
        self.api
            .get(&format!("{V1}/new"))
            .await
            .refused(404, "NotFound");
        assert_eq!(self.stored(name).await, before);
        self.api.get(&format!("{V1}/{name}")).await.ok();
        message
    }

    /// Replaces the endpoints of the webhook's Service. The API refuses loopback addresses.
    async fn store_slice(&self, slice: Value) {
        let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
        let kind = kinds()
            .by_resource("endpointslices.discovery.k8s.io")
            .unwrap();
        let slice = kind.from_json(slice.to_string().as_bytes()).unwrap();
        let value = envelope::of_object(&*slice, &slice.encode(), None);
        let key = "/registry/endpointslices/default/webhook-1";
        let old = self.store.get(key).await.unwrap();
        let write = match old {
            Some(old) => Write::update(key, old.revision, value),
            None => Write::create(key, value),
        };
        self.store.commit(write).await.unwrap();
        // A consistent read waits for the cache.
        self.api.get(slices).await.ok();
    }

    /// Runs the loops that delete in the background.
    fn background(&self) -> DropGuard {
        let stop = CancellationToken::new();
        let run = self.registry.clone();
        let (token, ignore) = (stop.clone(), |_: &'static str| |_: Result<(), String>| ());
        tokio::spawn(async move { run.run_background(HOUR, token, ignore).await });
        stop.drop_guard()
    }

    /// Waits until an object is gone.
    async fn gone(&self, path: &str) {
        let gone = async {
            while self.api.get_as(path, METADATA).await.code != 404 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(Duration::from_secs(60), gone)
            .await
            .expect("it is deleted in time");
    }
}
