//! Requests in the version that is stored, and in the other.

use prost::Message as _;
use serde_json::{Value, json};
use setpoint_gateway::in_process;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{
    self, CustomObject, DeleteRequest, GetRequest, ListRequest, WatchRequest,
};
use tonic::Status;

use super::super::watch::Events;
use super::super::webhook::Answer;
use super::{METADATA_LIST, PREFIX, Plane, V1, V2, first, second};

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
