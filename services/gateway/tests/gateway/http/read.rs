//! Get and list in every format.

use serde_json::{Value, json};
use setpoint_codec::envelope;

use crate::http::api::{Api, CONFIGMAPS, DEPLOYMENTS, PROTOBUF, deployment};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

async fn with(names: &[&str]) -> Api {
    let api = Api::start().await;
    for name in names {
        api.configmap(name).await;
    }
    api
}

#[tokio::test]
async fn an_object_is_read_as_it_was_written() {
    let api = with(&["a"]).await;
    let object = api.get(&format!("{CONFIGMAPS}/a")).await.ok();
    assert_eq!(object["data"]["a"], "b");
    assert_eq!(object["kind"], "ConfigMap");
    assert!(object["metadata"]["uid"].is_string());
}

#[tokio::test]
async fn the_error_of_a_missing_object_names_it() {
    let api = with(&[]).await;
    let reply = api.get(&format!("{DEPLOYMENTS}/web")).await;
    assert_eq!(
        reply.refused(404, "NotFound"),
        r#"deployments.apps "web" not found"#
    );
    let details = &reply.json()["details"];
    assert_eq!(
        details,
        &json!({ "name": "web", "group": "apps", "kind": "deployments" })
    );
}

#[tokio::test]
async fn a_list_has_its_kind_and_a_revision() {
    let api = with(&["b", "a"]).await;
    let list = api.get(CONFIGMAPS).await.ok();
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!(list["apiVersion"], "v1");
    assert_eq!(names(&list), ["a", "b"]);
    assert_eq!(list["items"][0].get("kind"), None, "as upstream");
    let revision: u64 = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(revision > 0);
    let everywhere = api.get("/api/v1/configmaps").await.ok();
    assert_eq!(names(&everywhere), ["a", "b"]);
    assert_eq!(
        api.get("/api/v1/namespaces/none/configmaps").await.ok()["items"],
        json!([])
    );
}

#[tokio::test]
async fn selectors_narrow_a_list() {
    let api = with(&["a", "b", "c"]).await;
    let list = |selector: &str| {
        let path = format!("{CONFIGMAPS}?{selector}");
        let api = &api;
        async move { api.get(&path).await }
    };
    assert_eq!(
        names(&list("labelSelector=name+in+(a,c)").await.ok()),
        ["a", "c"]
    );
    assert_eq!(names(&list("labelSelector=name!=b").await.ok()), ["a", "c"]);
    assert_eq!(
        names(&list("fieldSelector=metadata.name%3Db").await.ok()),
        ["b"]
    );
    list("labelSelector=a%3D%3D%3Db")
        .await
        .refused(400, "BadRequest");
    let unknown = list("fieldSelector=spec.nothing%3Db").await;
    assert_eq!(
        unknown.refused(400, "BadRequest"),
        r#""spec.nothing" is not a known field selector: only "metadata.name", "metadata.namespace""#
    );
    let unknown = api.get("/api/v1/pods?fieldSelector=spec.nothing%3Db").await;
    assert_eq!(
        unknown.refused(400, "BadRequest"),
        "field label not supported: spec.nothing"
    );
}

#[tokio::test]
async fn a_list_is_paged() {
    let api = with(&["a", "b", "c"]).await;
    let first = api.get(&format!("{CONFIGMAPS}?limit=2")).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let next = first["metadata"]["continue"].as_str().unwrap();
    api.configmap("aa").await;
    let second = api
        .get(&format!("{CONFIGMAPS}?limit=2&continue={next}"))
        .await
        .ok();
    assert_eq!(names(&second), ["c"]);
    assert_eq!(second["metadata"].get("continue"), None);
    assert_eq!(
        first["metadata"]["resourceVersion"],
        second["metadata"]["resourceVersion"]
    );
    api.get(&format!("{CONFIGMAPS}?limit=2&continue=nonsense"))
        .await
        .refused(400, "BadRequest");
    let both = format!("{CONFIGMAPS}?continue={next}&resourceVersion=5");
    api.get(&both).await.refused(400, "BadRequest");
}

#[tokio::test]
async fn a_list_is_read_at_the_requested_revision() {
    let api = with(&["a"]).await;
    let list = api.get(CONFIGMAPS).await.ok();
    let then = list["metadata"]["resourceVersion"].as_str().unwrap();
    api.configmap("b").await;
    let exact = api
        .get(&format!(
            "{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=Exact"
        ))
        .await
        .ok();
    assert_eq!(names(&exact), ["a"]);
    assert_eq!(exact["metadata"]["resourceVersion"], then);
    let newer = api
        .get(&format!(
            "{CONFIGMAPS}?resourceVersion={then}&resourceVersionMatch=NotOlderThan"
        ))
        .await
        .ok();
    assert!(names(&newer).contains(&"a"));
    api.get(&format!("{CONFIGMAPS}?resourceVersion=0"))
        .await
        .ok();
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Odd",
    ] {
        api.get(&format!("{CONFIGMAPS}?{query}"))
            .await
            .refused(422, "Invalid");
    }
    api.get(&format!("{CONFIGMAPS}?resourceVersion=x"))
        .await
        .refused(400, "BadRequest");
}

#[tokio::test]
async fn kubectl_gets_a_table() {
    let api = with(&[]).await;
    api.post(DEPLOYMENTS, deployment("web")).await.ok();
    let table = api.get_as(DEPLOYMENTS, TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["apiVersion"], "meta.k8s.io/v1");
    assert!(table["metadata"]["resourceVersion"].is_string());
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns: Vec<_> = columns
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        columns,
        [
            "Name",
            "Ready",
            "Up-to-date",
            "Available",
            "Age",
            "Containers",
            "Images",
            "Selector"
        ]
    );
    let row = &table["rows"][0];
    assert_eq!(row["cells"][0], "web");
    assert_eq!(row["cells"][1], "0/3");
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(row["object"]["metadata"]["namespace"], "default");
    let one = api
        .get_as(&format!("{DEPLOYMENTS}/web?includeObject=Object"), TABLE)
        .await
        .ok();
    assert_eq!(one["rows"][0]["object"]["spec"]["replicas"], 3);
}

/// Checks U7: the columns of kinds for which upstream has no printer, and of accounts, whose secrets are not counted.
#[tokio::test]
async fn kinds_without_a_printer_have_a_name_and_a_time() {
    let api = Api::start().await;
    for (path, time) in [
        ("/api/v1/serviceaccounts", "Age: string"),
        ("/api/v1/limitranges", "Created At: date"),
        (
            "/apis/storage.k8s.io/v1/csistoragecapacities",
            "Created At: date",
        ),
    ] {
        let table = api.get_as(path, TABLE).await.ok();
        let columns = table["columnDefinitions"].as_array().unwrap().iter();
        let text = |column: &Value, field: &str| column[field].as_str().unwrap().to_owned();
        let columns = columns.map(|one| format!("{}: {}", text(one, "name"), text(one, "type")));
        let columns: Vec<_> = columns.collect();
        assert_eq!(columns, ["Name: string", time], "{path}");
    }
}

#[tokio::test]
async fn a_client_can_request_only_metadata() {
    let api = with(&["a"]).await;
    let list = api.get_as(CONFIGMAPS, PARTIAL).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(names(&list), ["a"]);
    assert_eq!(list["items"][0].get("data"), None);
}

#[tokio::test]
async fn a_list_is_encoded_in_protobuf() {
    let api = with(&["a", "b"]).await;
    let reply = api.get_as(CONFIGMAPS, PROTOBUF).await;
    let envelope = envelope::read(&reply.body).unwrap();
    assert_eq!(envelope.kind, "ConfigMapList");
    // The items of a list are field 2, as the data of a ConfigMap.
    let items = envelope
        .raw
        .windows(2)
        .filter(|window| window == b"\x0a\x01");
    assert!(items.count() >= 2);
}

#[tokio::test]
async fn interactive_clients_get_indented_json() {
    let api = with(&["a"]).await;
    let path = format!("{CONFIGMAPS}/a");
    let pretty = api.get(&format!("{path}?pretty=true")).await;
    assert!(pretty.body.starts_with(b"{\n  \"kind\": \"ConfigMap\",\n"));
    let curl = http::Request::get(&path).header("user-agent", "curl/8.0");
    assert!(api.send(curl, "").await.body.starts_with(b"{\n"));
    assert!(!api.get(&path).await.body.starts_with(b"{\n"));
    assert_eq!(pretty.ok(), api.get(&path).await.ok());
}

/// Checks K19.
#[tokio::test]
async fn a_malformed_timeout_is_refused() {
    let api = Api::start().await;
    for path in [CONFIGMAPS, "/version"] {
        let refused = api.get(&format!("{path}?timeout=invalid")).await;
        assert_eq!(
            refused.refused(400, "BadRequest"),
            r#"invalid timeout specified in the request URL - time: invalid duration "invalid""#
        );
        api.get(&format!("{path}?timeout=30s")).await.ok();
    }
}

#[tokio::test]
async fn the_first_page_at_a_revision_is_read_at_exactly_that() {
    let api = with(&["a"]).await;
    let list = api.get(CONFIGMAPS).await.ok();
    let then = list["metadata"]["resourceVersion"].as_str().unwrap();
    api.configmap("b").await;
    let page = format!("{CONFIGMAPS}?limit=5&resourceVersion={then}");
    let page = api.get(&page).await.ok();
    assert_eq!(names(&page), ["a"]);
    assert_eq!(page["metadata"]["resourceVersion"], then);
    let page = format!("{CONFIGMAPS}?limit=5&resourceVersion=0");
    assert!(names(&api.get(&page).await.ok()).contains(&"a"));
}

#[tokio::test]
async fn a_list_has_no_initial_events() {
    let api = with(&[]).await;
    let path = format!("{CONFIGMAPS}?sendInitialEvents=true");
    assert_eq!(
        api.get(&path).await.refused(422, "Invalid"),
        r#"ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"#
    );
}

#[tokio::test]
async fn the_old_name_of_the_node_field_selects_pods() {
    let api = with(&[]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let spec = json!({ "nodeName": "n1", "containers": [{ "name": "a", "image": "a" }] });
    let pod = json!({ "metadata": { "name": "web" }, "spec": spec });
    let account = json!({ "metadata": { "name": "default" } });
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    api.post(accounts, account).await;
    api.post(pods, pod).await.ok();
    for (selector, found) in [("spec.host%3Dn1", 1), ("spec.host%3Dn2", 0)] {
        let list = api.get(&format!("{pods}?fieldSelector={selector}")).await;
        assert_eq!(list.ok()["items"].as_array().unwrap().len(), found);
    }
}
