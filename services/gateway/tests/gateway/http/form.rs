//! Objects as Tables and as metadata only, in every encoding.

use bytes::Buf as _;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use prost::Message as _;
use serde_json::{Value, json};
use setpoint_codec::envelope;
use setpoint_proto::meta::{PartialObjectMetadata, PartialObjectMetadataList, Status, WatchEvent};

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, PROTOBUF, deployment};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const PARTIAL_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn with_two() -> Api {
    let api = Api::start().await;
    api.configmap("a").await;
    api.configmap("b").await;
    api
}

/// Returns the events of a watch until the server ends it.
async fn events(api: &Api, query: &str, accept: &str) -> bytes::Bytes {
    let path = format!("{CONFIGMAPS}?watch=true&timeoutSeconds=1{query}");
    let response = api
        .open(Request::get(path).header(ACCEPT, accept), "")
        .await;
    assert_eq!(response.status(), 200);
    response.into_body().collect().await.unwrap().to_bytes()
}

const INITIAL: &str =
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

#[tokio::test(start_paused = true)]
async fn only_the_first_table_of_a_watch_has_columns() {
    let api = with_two().await;
    let lines = events(&api, INITIAL, TABLE).await;
    let lines = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let tables: Vec<_> = events.iter().map(|event| &event["object"]).collect();
    assert!(tables.iter().all(|table| table["kind"] == "Table"));
    assert_eq!(tables[0]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(tables[1].get("columnDefinitions"), Some(&Value::Null));
    assert_eq!(events[2]["type"], "BOOKMARK");
    let marked = &tables[2]["rows"][0]["object"]["metadata"]["annotations"];
    assert_eq!(marked["k8s.io/initial-events-end"], "true");
    let alone = api.get_as(&format!("{CONFIGMAPS}/a"), TABLE).await.ok();
    assert_eq!(alone["metadata"], tables[0]["metadata"]);
}

#[tokio::test]
async fn metadata_is_encoded_in_protobuf() {
    let api = with_two().await;
    let reply = api.get_as(&format!("{CONFIGMAPS}/a"), PARTIAL).await;
    assert_eq!(reply.headers[CONTENT_TYPE], PROTOBUF);
    let read = envelope::read(&reply.body).unwrap();
    let of = (read.api_version.as_str(), read.kind.as_str());
    assert_eq!(of, ("meta.k8s.io/v1", "PartialObjectMetadata"));
    let object = PartialObjectMetadata::decode(read.raw).unwrap();
    assert_eq!(object.metadata.name, "a");
    let reply = api.get_as(CONFIGMAPS, PARTIAL_LIST).await;
    let read = envelope::read(&reply.body).unwrap();
    assert_eq!(read.kind, "PartialObjectMetadataList");
    let list = PartialObjectMetadataList::decode(read.raw).unwrap();
    assert!(!list.metadata.resource_version.is_empty());
    let names = list.items.iter().map(|item| item.metadata.name.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_is_watched_in_protobuf() {
    let api = with_two().await;
    let mut frames = events(&api, INITIAL, PARTIAL).await;
    let mut seen = Vec::new();
    while frames.has_remaining() {
        let length = frames.get_u32();
        let event = WatchEvent::decode(frames.split_to(length as usize)).unwrap();
        let read = envelope::read(&event.object.raw).unwrap();
        assert_eq!(read.kind, "PartialObjectMetadata");
        let object = PartialObjectMetadata::decode(read.raw).unwrap();
        seen.push((event.r#type, object.metadata.name));
    }
    let expected = [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")];
    let expected = expected.map(|(of, name)| (of.to_owned(), name.to_owned()));
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_metadata_of_a_list_and_of_an_object_differ() {
    let api = with_two().await;
    let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let message = api.get_as(CONFIGMAPS, one).await;
    assert_eq!(
        message.refused(406, "NotAcceptable"),
        "you requested PartialObjectMetadata, but the requested object is a list (ConfigMapList)"
    );
    let reply = api.get_as(&format!("{CONFIGMAPS}/a"), PARTIAL_LIST).await;
    assert_eq!(reply.code, StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn a_table_is_acceptable_for_what_has_one() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let table = api.get_as(&format!("{DEPLOYMENTS}/web/scale"), TABLE).await;
    let table = table.ok();
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<_> = columns.map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Desired", "Available", "Age"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!((&cells[1], &cells[2]), (&json!(3), &json!(0)));
    let binding = Request::post("/api/v1/namespaces/default/pods/web/binding")
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, TABLE);
    let refused = api.send(binding, "{}").await;
    assert_eq!(
        refused.refused(406, "NotAcceptable"),
        "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
    );
}

#[tokio::test]
async fn a_table_has_what_the_client_asks_for() {
    let api = with_two().await;
    let yaml = "application/yaml;as=Table;v=v1beta1;g=meta.k8s.io";
    let reply = api.get_as(CONFIGMAPS, yaml).await;
    let text = String::from_utf8(reply.body.to_vec()).unwrap();
    assert!(text.contains("apiVersion: meta.k8s.io/v1beta1\n"), "{text}");
    let bare = format!("{CONFIGMAPS}?includeObject=None");
    let table = api.get_as(&bare, TABLE).await.ok();
    assert_eq!(table["rows"][0]["object"], Value::Null);
    let odd = format!("{CONFIGMAPS}?includeObject=Odd");
    let refused = api.get_as(&odd, TABLE).await;
    assert_eq!(
        refused.refused(400, "BadRequest"),
        r#"Unable to convert to Table as requested: includeObject: Invalid value: "Odd": must be 'Metadata', 'Object', 'None', or empty"#
    );
    api.get(&odd).await.ok();
}

#[tokio::test]
async fn errors_are_encoded_as_the_client_accepts() {
    let api = Api::start().await;
    let reply = api.get_as(&format!("{CONFIGMAPS}/none"), PROTOBUF).await;
    assert_eq!(reply.code, 404);
    let read = envelope::read(&reply.body).unwrap();
    assert_eq!(Status::decode(read.raw).unwrap().reason, "NotFound");
    let reply = api.get_as(&format!("{CONFIGMAPS}/none"), TABLE).await;
    reply.refused(404, "NotFound");
}

#[tokio::test]
async fn a_stream_of_yaml_is_not_acceptable() {
    let api = Api::start().await;
    let path = format!("{CONFIGMAPS}?watch=true");
    let reply = api.get_as(&path, "application/yaml").await;
    assert_eq!(reply.code, 406);
}
