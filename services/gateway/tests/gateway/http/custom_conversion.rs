//! Custom objects that a webhook converts between versions.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use prost::Message as _;
use serde_json::{Value, json};
use setpoint_codec::{envelope, kinds};
use setpoint_gateway::in_process;
use setpoint_gateway::registry::Registry;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    self, CustomObject, DeleteRequest, GetRequest, ListRequest, WatchRequest,
};
use setpoint_store::{Memory, Store as _, Write, cache};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::Status;

use super::api::{Api, Reply};
use super::watch::Events;
use super::webhook::{Answer, Webhook};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/endpoints.stable.example.com";
const V1: &str = "/apis/stable.example.com/v1/namespaces/default/endpoints";
const V2: &str = "/apis/stable.example.com/v2/namespaces/default/endpoints";
const FOLDER: &str = "/registry/stable.example.com/endpoints/default";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
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

const PREFIX: &str = "conversion webhook for stable.example.com/v1, Kind=Endpoint ";

#[tokio::test]
async fn an_object_is_read_and_written_in_every_version() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    assert_eq!(plane.webhook.counts(), (0, 0), "it is stored in v1");
    let path = format!("{V2}/a");
    let mut read = plane.api.get(&path).await.ok();
    assert_eq!(read["apiVersion"], "stable.example.com/v2");
    assert_eq!((&read["host"], &read["port"]), (&json!("one"), &json!("1")));
    assert_eq!(read.get("hostPort"), None);
    assert_eq!(plane.webhook.counts(), (1, 1));

    read["port"] = "2".into();
    let written = plane.api.put(&path, read).await.ok();
    assert_eq!(written["port"], "2");
    assert_eq!(written["metadata"]["generation"], 2);
    let first = plane.api.get(&format!("{V1}/a")).await.ok();
    assert_eq!(first["hostPort"], "one:2");
    assert_eq!(first["metadata"]["generation"], 2);
    assert_eq!(plane.stored_version("a").await, "stable.example.com/v1");

    let created = plane.api.post(V2, second("b", "two", "22")).await.ok();
    assert_eq!(created["apiVersion"], "stable.example.com/v2");
    let first = plane.api.get(&format!("{V1}/b")).await.ok();
    assert_eq!(first["hostPort"], "two:22");
    assert_eq!(first["metadata"]["uid"], created["metadata"]["uid"]);
    let invalid = plane.api.post(V2, second("c", "two", "x")).await;
    let message = invalid.refused(422, "Invalid");
    assert!(message.contains("port: Invalid value"), "{message}");
}

#[tokio::test]
async fn every_patch_is_in_the_version_of_the_request() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let path = format!("{V2}/a");
    let merged = plane
        .api
        .patch(&path, "merge-patch+json", json!({ "port": "2" }));
    assert_eq!(merged.await.ok()["port"], "2");
    let operations = json!([
        { "op": "test", "path": "/host", "value": "one" },
        { "op": "replace", "path": "/host", "value": "three" },
    ]);
    let patched = plane.api.patch(&path, "json-patch+json", operations).await;
    assert_eq!(patched.ok()["host"], "three");
    let first = plane.api.get(&format!("{V1}/a")).await.ok();
    assert_eq!(first["hostPort"], "three:2");
}

#[tokio::test]
async fn the_status_and_the_scale_are_converted() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let mut object = plane.api.get(&format!("{V2}/a")).await.ok();
    object["status"] = json!({ "phase": "Ready", "replicas": 3 });
    object["host"] = "ignored".into();
    let status = plane.api.put(&format!("{V2}/a/status"), object).await.ok();
    assert_eq!(status["status"]["phase"], "Ready");
    assert_eq!(status["host"], "one");
    let scale = json!({ "spec": { "replicas": 5 } });
    let path = format!("{V2}/a/scale");
    let scaled = plane.api.patch(&path, "merge-patch+json", scale).await.ok();
    let replicas = (&scaled["spec"]["replicas"], &scaled["status"]["replicas"]);
    assert_eq!(replicas, (&json!(5), &json!(3)));
    let first = plane.api.get(&format!("{V1}/a")).await.ok();
    assert_eq!(first["spec"]["replicas"], 5);
    assert_eq!(first["hostPort"], "one:1");
}

#[tokio::test]
async fn one_call_converts_all_objects_of_a_list_that_need_it() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.create("b", "two:2").await;
    plane.store_second().await;
    plane.api.post(V2, second("c", "three", "3")).await.ok();
    assert_eq!(plane.stored_version("a").await, "stable.example.com/v1");
    assert_eq!(plane.stored_version("c").await, "stable.example.com/v2");
    plane.webhook.counts();

    let list = plane.api.get(V2).await.ok();
    assert_eq!(plane.webhook.counts(), (1, 2));
    let found = |list: &Value, field: &str| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item[field].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(found(&list, "host"), ["one", "two", "three"]);
    let versions = found(&list, "apiVersion");
    assert!(versions.iter().all(|one| one == "stable.example.com/v2"));
    let list = plane.api.get(V1).await.ok();
    assert_eq!(plane.webhook.counts(), (1, 1));
    assert_eq!(found(&list, "hostPort"), ["one:1", "two:2", "three:3"]);
}

#[tokio::test]
async fn an_object_is_stored_in_the_new_storage_version_by_its_next_write() {
    let plane = Plane::start().await;
    let mut object = plane.create("a", "one:1").await;
    plane.store_second().await;
    assert_eq!(plane.stored_version("a").await, "stable.example.com/v1");
    object["hostPort"] = "one:2".into();
    plane.api.put(&format!("{V1}/a"), object.clone()).await.ok();
    assert_eq!(plane.stored_version("a").await, "stable.example.com/v2");
    let read = plane.api.get(&format!("{V1}/a")).await.ok();
    assert_eq!(read["hostPort"], "one:2");
    // A write without a change writes nothing.
    let again = plane.api.put(&format!("{V1}/a"), read.clone()).await.ok();
    let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(revision(&again), revision(&read));
}

#[tokio::test]
async fn the_events_of_a_watch_are_converted() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let mut events = Events::of(&plane.api, &format!("{V2}?watch=1"), "application/json").await;
    let added = events.next().await.unwrap();
    assert_eq!(
        (&added["type"], &added["object"]["host"]),
        (&json!("ADDED"), &json!("one"))
    );
    let patch = json!({ "hostPort": "two:2" });
    let path = format!("{V1}/a");
    plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    let modified = events.next().await.unwrap();
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"]["apiVersion"], "stable.example.com/v2");
    assert_eq!(modified["object"]["port"], "2");
    plane.api.delete(&path).await.ok();
    let deleted = events.next().await.unwrap();
    assert_eq!(
        (&deleted["type"], &deleted["object"]["host"]),
        (&json!("DELETED"), &json!("two"))
    );
}

#[tokio::test]
async fn objects_are_selected_by_the_fields_of_the_version_of_the_request() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.create("b", "two:2").await;
    let selected = format!("{V2}?fieldSelector=host%3Dtwo");
    let names = |list: &Value| -> Vec<Value> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].clone()).collect()
    };
    assert_eq!(names(&plane.api.get(&selected).await.ok()), ["b"]);
    let listed = plane.api.get_as(&selected, METADATA_LIST).await.ok();
    assert_eq!(names(&listed), ["b"]);
    let path = format!("{selected}&watch=1");
    let mut events = Events::of(&plane.api, &path, "application/json").await;
    let mut next = async || {
        let event = events.next().await.unwrap();
        (
            event["type"].clone(),
            event["object"]["metadata"]["name"].clone(),
        )
    };
    assert_eq!(next().await, (json!("ADDED"), json!("b")));
    for (name, host, told) in [("a", "two:1", "ADDED"), ("b", "one:2", "DELETED")] {
        let path = format!("{V1}/{name}");
        let patch = json!({ "hostPort": host });
        plane.api.patch(&path, "merge-patch+json", patch).await.ok();
        assert_eq!(next().await, (json!(told), json!(name)));
    }
    plane.api.delete(&selected).await.ok();
    assert_eq!(next().await, (json!("DELETED"), json!("a")));
    plane
        .api
        .get(&format!("{V1}/a"))
        .await
        .refused(404, "NotFound");
    plane.api.get(&format!("{V1}/b")).await.ok();
}

#[tokio::test]
async fn a_failed_conversion_ends_a_watch() {
    let plane = Plane::start().await;
    let mut events = Events::of(&plane.api, &format!("{V2}?watch=1"), "application/json").await;
    plane.webhook.answer(Answer::Status(500, "it broke"));
    plane.create("a", "one:1").await;
    let error = events.next().await.unwrap();
    assert_eq!(
        (&error["type"], &error["object"]["code"]),
        (&json!("ERROR"), &json!(500))
    );
    let message = error["object"]["message"].as_str().unwrap();
    assert!(message.starts_with(PREFIX), "{message}");
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn bookmarks_name_the_version_of_the_request() {
    let plane = Plane::start().await;
    let query =
        "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut events = Events::of(&plane.api, &format!("{V2}?{query}"), "application/json").await;
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["apiVersion"], "stable.example.com/v2");
    assert_eq!(plane.webhook.counts(), (0, 0));
}

#[tokio::test]
async fn configurations_of_several_versions_are_applied() {
    let plane = Plane::start().await;
    plane.apply(V1, "one", first("a", "one:1")).await.ok();
    let mut replicas = second("a", "one", "1");
    replicas
        .as_object_mut()
        .unwrap()
        .retain(|name, _| !["host", "port"].contains(&name.as_str()));
    replicas["spec"] = json!({ "replicas": 2 });
    let applied = plane.apply(V2, "two", replicas.clone()).await.ok();
    assert_eq!(
        (&applied["host"], &applied["spec"]["replicas"]),
        (&json!("one"), &json!(2))
    );
    let managers: Vec<_> = applied["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .clone();
    let of = |manager: &str| {
        managers
            .iter()
            .find(|one| one["manager"] == manager)
            .unwrap()
    };
    assert_eq!(of("one")["apiVersion"], "stable.example.com/v1");
    assert_eq!(of("two")["apiVersion"], "stable.example.com/v2");

    let conflict = plane.apply(V2, "two", second("a", "two", "1")).await;
    let message = conflict.refused(409, "Conflict");
    assert!(
        message.contains(r#"conflict with "one": .hostPort"#),
        "{message}"
    );
    let same = plane.apply(V2, "two", second("a", "one", "1")).await.ok();
    assert_eq!(same["host"], "one");

    let patch = json!({ "port": "9" });
    let patched = plane
        .api
        .patch(&format!("{V2}/a"), "merge-patch+json", patch)
        .await;
    let managers = patched.ok()["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("f:hostPort"), "{managers}");
}

#[tokio::test]
async fn objects_are_converted_for_grpc() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let gateway = in_process::start_over(plane.store.clone()).await;
    let mut client = ObjectsClient::connect(gateway.url.clone()).await.unwrap();
    let resource = "endpoints.v2.stable.example.com".to_owned();
    let custom = |object: setpoint::Object| -> CustomObject {
        CustomObject::decode(object.object.unwrap().value).unwrap()
    };
    let content = |object: &CustomObject| -> Value {
        assert_eq!(object.api_version, "stable.example.com/v2");
        serde_json::from_slice(&object.content).unwrap()
    };
    let get = GetRequest {
        resource: resource.clone(),
        namespace: "default".into(),
        name: "a".into(),
        ..Default::default()
    };
    let found = client.get(get).await.unwrap().into_inner();
    let found = custom(found);
    assert_eq!(content(&found), json!({ "host": "one", "port": "1" }));
    let list = ListRequest {
        resource: resource.clone(),
        ..Default::default()
    };
    let listed = client.list(list).await.unwrap().into_inner().items;
    let listed: Vec<_> = listed.into_iter().map(custom).collect();
    assert_eq!(listed, std::slice::from_ref(&found));
    let watch = WatchRequest {
        resource: resource.clone(),
        send_initial_events: true,
        ..Default::default()
    };
    let mut events = client.watch(watch).await.unwrap().into_inner();
    let event = events.message().await.unwrap().unwrap();
    let event = custom(setpoint::Object::decode(event.object).unwrap());
    assert_eq!(event, found);

    plane.webhook.answer(Answer::Status(500, "it broke"));
    let delete = DeleteRequest {
        resource,
        namespace: "default".into(),
        name: "a".into(),
        ..Default::default()
    };
    let deleted = client.delete(delete).await.unwrap().into_inner();
    assert_eq!(custom(deleted).api_version, "stable.example.com/v1");
    // The bookmark at the end of the initial events comes first.
    let ended = async {
        while events.message().await?.is_some() {}
        Ok::<_, Status>(())
    };
    let error = ended.await.unwrap_err();
    assert!(error.message().starts_with(PREFIX), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_not_one_to_the_review_is_refused() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    let cases: [(Change, &str); 8] = [
        (
            |answer| answer["response"]["uid"] = "other".into(),
            "failed: expected response.uid=",
        ),
        (
            |answer| answer["kind"] = "Pod".into(),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Pod",
        ),
        (
            |answer| answer["response"]["convertedObjects"] = json!([]),
            "returned 0 objects, expected 1",
        ),
        (
            |answer| {
                answer["response"]["result"] = json!({ "status": "Failure", "message": "no way" })
            },
            "failed: no way",
        ),
        (
            |answer| answer["response"]["result"] = json!({}),
            "failed: response.result.status was '', not 'Success'",
        ),
        (
            |answer| {
                answer["response"]["convertedObjects"][0]["apiVersion"] =
                    "stable.example.com/v3".into()
            },
            "returned invalid object at index 0: invalid groupVersion (expected stable.example.com/v2, received stable.example.com/v3)",
        ),
        (
            |answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = "b".into(),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |answer| {
                answer["response"]["convertedObjects"][0]["metadata"]["labels"] =
                    json!({ "a b": "" })
            },
            "returned invalid metadata: metadata.labels: Invalid value",
        ),
    ];
    for (change, expected) in cases {
        plane.webhook.answer(Answer::Changed(change));
        let read = plane.api.get(&format!("{V2}/a")).await;
        let message = read.refused(500, "InternalError");
        assert!(
            message.starts_with(&format!("{PREFIX}{expected}")),
            "{message}"
        );
    }
    plane.webhook.answer(Answer::Changed(|answer| {
        answer["response"]["convertedObjects"][0]["metadata"]["uid"] = "other".into();
    }));
    let message = plane.fails("a").await;
    assert!(message.contains("must have the same UID"), "{message}");
}

#[tokio::test]
async fn only_labels_and_annotations_are_taken_from_the_webhook() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Changed(|answer| {
        let metadata = &mut answer["response"]["convertedObjects"][0]["metadata"];
        metadata["labels"] = json!({ "by": "webhook" });
        metadata["finalizers"] = json!(["example.com/held"]);
        metadata["generation"] = 9.into();
    }));
    let metadata = plane.api.get(&format!("{V2}/a")).await.ok()["metadata"].clone();
    assert_eq!(metadata["labels"], json!({ "by": "webhook" }));
    assert_eq!(
        (metadata.get("finalizers"), &metadata["generation"]),
        (None, &json!(1))
    );
}

#[tokio::test]
async fn an_unsuccessful_or_large_response_is_an_error() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Status(500, "it broke"));
    let url = format!(
        "https://localhost:{}/convert?timeout=30s",
        plane.webhook.port
    );
    let message = plane.fails("a").await;
    assert_eq!(
        message,
        format!(
            r#"{PREFIX}failed: an error on the server ("it broke") has prevented the request from succeeding"#
        )
    );
    plane.webhook.answer(Answer::Status(302, ""));
    let message = plane.fails("a").await;
    assert!(message.contains("the status code 302"), "{message}");
    plane.webhook.answer(Answer::Large(32 << 20));
    let message = plane.fails("a").await;
    let expected = format!(r#"{PREFIX}failed: Post "{url}": the response is larger than"#);
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn a_webhook_that_cannot_be_reached_is_an_error() {
    let plane = Plane::start().await;
    plane.create("a", "one:1").await;
    // Nothing listens on a port that was just bound and freed.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    plane
        .redefine(|definition| {
            let url = format!("https://127.0.0.1:{port}/convert");
            definition["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = url.into();
        })
        .await;
    let message = plane.fails("a").await;
    let expected = format!(
        r#"{PREFIX}failed: Post "https://127.0.0.1:{port}/convert?timeout=30s": dial tcp 127.0.0.1:{port}: connect: connection refused"#
    );
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_not_trusted() {
    let other = Webhook::start().await;
    let plane = Plane::with(LONG, |webhook| {
        let mut config = webhook.by_url();
        config["caBundle"] = other.ca_bundle.clone().into();
        config
    })
    .await;
    plane.create("a", "one:1").await;
    let message = plane.fails("a").await;
    assert!(
        message.ends_with(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        ),
        "{message}"
    );
    assert_eq!(plane.webhook.counts(), (0, 0), "nothing is sent");
    plane
        .redefine(|definition| {
            let config = &mut definition["spec"]["conversion"]["webhook"]["clientConfig"];
            config["caBundle"] = plane.webhook.ca_bundle.clone().into();
        })
        .await;
    plane.api.get(&format!("{V2}/a")).await.ok();
}

#[tokio::test]
async fn a_webhook_that_does_not_answer_delays_no_other_request() {
    let plane = Plane::with(Duration::from_millis(300), Webhook::by_url).await;
    plane.create("a", "one:1").await;
    plane.webhook.answer(Answer::Nothing);
    let path = format!("{V2}/a");
    let mut hanging = std::pin::pin!(plane.api.get(&path));
    let other = async {
        plane.api.configmap("c").await;
        plane.create("b", "two:2").await;
    };
    tokio::select! {
        biased;
        () = other => {}
        _ = &mut hanging => panic!("it does not answer"),
    }
    let message = hanging.await.refused(500, "InternalError");
    assert!(message.ends_with("context deadline exceeded"), "{message}");
    plane.fails("a").await;
}

#[tokio::test]
async fn a_service_is_called_at_its_endpoints() {
    let plane = Plane::with(LONG, |webhook| {
        let service =
            json!({ "namespace": "default", "name": "webhook", "path": "/convert", "port": 443 });
        json!({ "service": service, "caBundle": webhook.ca_bundle })
    })
    .await;
    plane.create("a", "one:1").await;
    let path = format!("{V2}/a");
    let message = plane.fails("a").await;
    let url = "https://webhook.default.svc:443/convert?timeout=30s";
    assert_eq!(
        message,
        format!(r#"{PREFIX}failed: Post "{url}": service "webhook" not found"#)
    );
    let service = json!({
        "metadata": { "name": "webhook" },
        "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": plane.webhook.port }] },
    });
    plane
        .api
        .post("/api/v1/namespaces/default/services", service)
        .await
        .ok();
    let slice = |ready: bool| {
        json!({
            "metadata": { "name": "webhook-1", "namespace": "default", "labels": { "kubernetes.io/service-name": "webhook" } },
            "addressType": "IPv4",
            "endpoints": [{ "addresses": ["127.0.0.1"], "conditions": { "ready": ready } }],
            "ports": [{ "name": "https", "port": plane.webhook.port }],
        })
    };
    plane.store_slice(slice(false)).await;
    let message = plane.fails("a").await;
    let expected = r#"no endpoints available for service "webhook""#;
    assert!(message.ends_with(expected), "{message}");
    plane.store_slice(slice(true)).await;
    assert_eq!(plane.api.get(&path).await.ok()["host"], "one");
}

#[tokio::test]
async fn deletions_go_on_while_the_webhook_is_broken() {
    let plane = Plane::start().await;
    let _background = plane.background();
    plane.create("a", "one:1").await;
    let mut held = first("b", "two:2");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    plane.api.post(V1, held).await.ok();
    plane.create("c", "three:3").await;
    plane.store_second().await;
    plane.webhook.answer(Answer::Status(500, ""));

    let list = plane.api.get_as(V2, METADATA_LIST).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    let one = plane.api.get_as(&format!("{V2}/a"), METADATA).await.ok();
    assert_eq!(one["metadata"]["name"], "a");
    plane.api.get(V2).await.refused(500, "InternalError");

    plane.api.delete(&format!("{V2}/a")).await.ok();
    plane.gone(&format!("{V2}/a")).await;
    let begun = plane.api.delete(&format!("{V2}/b")).await.ok();
    assert_eq!(begun["status"], "Success");
    let metadata = plane.api.get_as(&format!("{V2}/b"), METADATA).await.ok();
    assert!(metadata["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(plane.stored_version("b").await, "stable.example.com/v1");

    let patch = json!({ "metadata": { "finalizers": null } });
    let path = format!("{V1}/b");
    plane.api.patch(&path, "merge-patch+json", patch).await.ok();
    plane.gone(&path).await;
    plane.api.delete(DEFINITION).await.ok();
    plane.gone(DEFINITION).await;
    assert_eq!(plane.store.get(&format!("{FOLDER}/c")).await.unwrap(), None);
}
