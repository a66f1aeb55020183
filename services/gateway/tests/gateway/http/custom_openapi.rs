//! The OpenAPI documents of custom kinds.

use axum::body::Body;
use http::Request;
use http::header::{ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

use super::api::Api;
use super::custom::{DEFINITIONS, definition};

const V1: &str = "/openapi/v3/apis/stable.example.com/v1";
const CRONTAB: &str = "com.example.stable.v1.CronTab";
const CRONTAB_V2: &str = "com.example.stable.v2.CronTab";
const LIST: &str = "com.example.stable.v1.CronTabList";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";

fn with_schema(schema: Value) -> Value {
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = schema;
    version["selectableFields"] = json!([]);
    definition
}

/// Returns the schema of CronTabs in v3 and in v2, without what every object has.
async fn published(schema: Value) -> [Value; 2] {
    let api = Api::start().await;
    api.define(with_schema(schema)).await;
    let mut v3 = api.get(V1).await.ok();
    let mut v2 = api.get("/openapi/v2").await.ok();
    [
        v3["components"]["schemas"][CRONTAB].take(),
        v2["definitions"][CRONTAB].take(),
    ]
    .map(own)
}

/// Changes the definition of CronTabs, and waits until the change is in effect.
async fn change(api: &Api, patch: Value) {
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    api.patch(&path, "json-patch+json", patch).await.ok();
    api.get(&path).await.ok();
}

/// Removes what every object has.
fn own(mut schema: Value) -> Value {
    let fields = schema.as_object_mut().unwrap();
    fields.remove("x-kubernetes-group-version-kind").unwrap();
    if let Some(properties) = fields.get_mut("properties") {
        for name in ["apiVersion", "kind", "metadata"] {
            properties.as_object_mut().unwrap().remove(name);
        }
    }
    schema
}

#[tokio::test]
async fn the_schema_of_a_custom_kind_is_published_with_that_of_its_list() {
    let api = Api::with_crontabs().await;
    let document = api.get(V1).await.ok();
    let schemas = &document["components"]["schemas"];
    let crontab = &schemas[CRONTAB];
    let of = json!([{ "group": "stable.example.com", "version": "v1", "kind": "CronTab" }]);
    assert_eq!(crontab["x-kubernetes-group-version-kind"], of);
    let selectable = json!([{ "fieldPath": "spec.image" }]);
    assert_eq!(crontab["x-kubernetes-selectable-fields"], selectable);
    let properties = &crontab["properties"];
    let metadata = &properties["metadata"];
    let reference = format!("#/components/schemas/{OBJECT_META}");
    assert_eq!(metadata["allOf"], json!([{ "$ref": reference }]));
    let text = metadata["description"].as_str().unwrap();
    assert!(text.starts_with("Standard object's metadata."), "{text}");
    let text = properties["apiVersion"]["description"].as_str().unwrap();
    assert!(text.starts_with("APIVersion defines "), "{text}");
    let spec = &properties["spec"]["properties"];
    assert_eq!(spec["image"]["default"], "busybox");
    assert_eq!(spec["ports"]["x-kubernetes-list-map-keys"], json!(["name"]));
    let list = &schemas[LIST];
    let items = format!("#/components/schemas/{CRONTAB}");
    assert_eq!(list["properties"]["items"]["items"]["$ref"], items);
    assert_eq!(list["description"], "CronTabList is a list of CronTab");
    assert!(schemas[OBJECT_META]["properties"]["name"].is_object());
    assert!(schemas["io.k8s.api.autoscaling.v1.Scale"].is_object());
}

#[tokio::test]
async fn every_reference_resolves() {
    let api = Api::with_crontabs().await;
    for (path, at, prefix) in [
        (V1, "/components/schemas", "#/components/schemas/"),
        ("/openapi/v2", "/definitions", "#/definitions/"),
    ] {
        let document = api.get(path).await.ok();
        let schemas = document.pointer(at).unwrap();
        for rest in document.to_string().split(prefix).skip(1) {
            let name = rest.split('"').next().unwrap();
            assert!(schemas[name].is_object(), "{name}");
        }
    }
}

#[tokio::test]
async fn the_paths_of_a_custom_kind_are_published() {
    let api = Api::with_crontabs().await;
    let root = "/apis/stable.example.com/v1";
    let collection = format!("{root}/namespaces/{{namespace}}/crontabs");
    let v3 = api.get(V1).await.ok();
    let v2 = api.get("/openapi/v2").await.ok();
    for document in [&v3, &v2] {
        let paths = &document["paths"];
        let methods = |path: &str| {
            let path = paths[path].as_object().unwrap().keys();
            let methods = path.filter(|name| *name != "parameters").cloned();
            methods.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(methods(&format!("{root}/crontabs")), "get");
        assert_eq!(methods(&collection), "delete get post");
        let object = format!("{collection}/{{name}}");
        assert_eq!(methods(&object), "delete get patch put");
        assert_eq!(methods(&format!("{object}/status")), "get patch put");
        let scale = format!("{object}/scale");
        assert_eq!(methods(&scale), "get patch put");
        let of = &paths[&scale]["get"]["x-kubernetes-group-version-kind"];
        assert_eq!(of["kind"], "Scale");
        let id = &paths[&object]["patch"]["operationId"];
        assert_eq!(id, "patchStableExampleComV1NamespacedCronTab");
    }
    let patch = &v2["paths"][format!("{collection}/{{name}}")]["patch"];
    let mut types: Vec<_> = patch["consumes"].as_array().unwrap().clone();
    types.sort_by_key(Value::to_string);
    assert_eq!(
        types,
        [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ]
    );
    let parameters = patch["parameters"].as_array().unwrap().iter();
    let names: Vec<_> = parameters.map(|parameter| &parameter["name"]).collect();
    assert!(names.contains(&&json!("fieldValidation")) && names.contains(&&json!("dryRun")));
}

#[tokio::test]
async fn a_document_follows_its_definition_at_once() {
    let api = Api::start().await;
    let index = async || api.get("/openapi/v3").await.ok()["paths"].clone();
    let url = async |version: &str| {
        let path = format!("apis/stable.example.com/{version}");
        index().await[path]["serverRelativeURL"].clone()
    };
    assert_eq!(url("v1").await, Value::Null);
    api.get(V1).await.refused(404, "NotFound");
    api.define(definition()).await;
    let (first, second) = (url("v1").await, url("v2").await);
    let unchanged = api.get(first.as_str().unwrap()).await;
    assert_eq!(
        unchanged.headers["cache-control"],
        "public, immutable, max-age=31536000"
    );

    let patch = json!([{
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color",
        "value": { "type": "string", "description": "The color." },
    }]);
    change(&api, patch).await;
    assert_ne!(url("v1").await, first);
    assert_eq!(url("v2").await, second);
    let moved = api.get(first.as_str().unwrap()).await;
    assert_eq!(moved.code, 301);
    let document = api.get("/openapi/v2").await.ok();
    let spec = &document["definitions"][CRONTAB]["properties"]["spec"];
    assert_eq!(spec["properties"]["color"]["description"], "The color.");

    let patch = json!([{ "op": "replace", "path": "/spec/versions/1/served", "value": false }]);
    change(&api, patch).await;
    assert_eq!(url("v2").await, Value::Null);
    let document = api.get("/openapi/v2").await.ok();
    assert_eq!(document["definitions"].get(CRONTAB_V2), None);
    assert!(document["definitions"][CRONTAB].is_object());
}

#[tokio::test]
async fn a_document_goes_with_its_definition() {
    let api = Api::with_crontabs().await;
    api.get(V1).await.ok();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    api.delete(&path).await.ok();
    // Without the loop that removes the objects and then the finalizer.
    let patch = json!({ "metadata": { "finalizers": null } });
    api.patch(&path, "merge-patch+json", patch).await.ok();
    api.get(&path).await.refused(404, "NotFound");
    api.get(V1).await.refused(404, "NotFound");
    let document = api.get("/openapi/v2").await.ok();
    assert_eq!(document["definitions"].get(CRONTAB), None);
}

#[tokio::test]
async fn a_renamed_version_is_published_by_its_new_name() {
    let api = Api::with_crontabs().await;
    let patch = json!([{ "op": "replace", "path": "/spec/versions/1/name", "value": "v3" }]);
    change(&api, patch).await;
    let document = api.get("/openapi/v2").await.ok();
    let definitions = document["definitions"].as_object().unwrap();
    assert!(definitions.contains_key("com.example.stable.v3.CronTab"));
    assert!(!definitions.contains_key(CRONTAB_V2));
}

#[tokio::test]
async fn kinds_of_one_version_are_in_one_document() {
    let api = Api::with_crontabs().await;
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.stable.example.com".into();
    other["spec"]["scope"] = "Cluster".into();
    other["spec"]["names"] = json!({ "plural": "gadgets", "kind": "Gadget" });
    api.define(other).await;
    let document = api.get(V1).await.ok();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.contains_key(CRONTAB) && schemas.contains_key("com.example.stable.v1.Gadget"));
    let path = "/apis/stable.example.com/v1/gadgets/{name}";
    assert!(document["paths"][path]["get"].is_object());
}

#[tokio::test]
async fn a_client_that_has_the_documents_does_not_receive_them_again() {
    let api = Api::with_crontabs().await;
    for path in ["/openapi/v2", "/openapi/v3", V1] {
        let first = api.get(path).await;
        let etag = &first.headers[ETAG];
        let request = Request::get(path).header(IF_NONE_MATCH, etag);
        let second = api.send(request, Body::empty()).await;
        assert_eq!(second.code, 304, "{path}");
    }
    // A change of the status alone is no change of the document.
    let before = api.get(V1).await.headers[ETAG].clone();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let mut stored = api.get(&path).await.ok();
    stored["status"]["conditions"][0]["message"] = "again".into();
    api.put(&format!("{path}/status"), stored).await.ok();
    api.get(&path).await.ok();
    assert_eq!(api.get(V1).await.headers[ETAG], before);
}

#[tokio::test]
async fn v2_lacks_what_its_clients_cannot_read() {
    let schema = json!({
        "type": "object",
        "description": "A tab.",
        "properties": { "spec": {
            "type": "object",
            "required": ["maybe", "name"],
            "oneOf": [{ "required": ["name"] }],
            "properties": {
                "name": { "type": "string", "default": "a", "maxLength": 9, "enum": ["a", "b"] },
                "maybe": { "type": "string", "nullable": true },
                "port": { "x-kubernetes-int-or-string": true },
            },
        } },
    });
    let [v3, v2] = published(schema.clone()).await;
    let mut expected = schema;
    let types = json!([{ "type": "integer" }, { "type": "string" }]);
    expected["properties"]["spec"]["properties"]["port"]["anyOf"] = types;
    assert_eq!(v3, expected);
    assert_eq!(
        v2,
        json!({
            "type": "object",
            "description": "A tab.",
            "properties": { "spec": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "type": "string", "maxLength": 9, "enum": ["a", "b"] },
                    "maybe": {},
                    "port": { "x-kubernetes-int-or-string": true },
                },
            } },
        })
    );
}

#[tokio::test]
async fn a_kind_with_unknown_fields_has_no_properties_in_v2() {
    let schema = json!({ "type": "object", UNKNOWN: true });
    let [v3, v2] = published(schema).await;
    assert_eq!(
        v3,
        json!({ "type": "object", UNKNOWN: true, "properties": {} })
    );
    assert_eq!(v2, json!({ "type": "object" }));
}

#[tokio::test]
async fn a_field_with_unknown_fields_has_any_type_in_v2() {
    let inner = json!({
        "type": "object",
        "description": "Open.",
        UNKNOWN: true,
        "properties": { "a": { "type": "string" } },
    });
    let schema = json!({ "type": "object", "properties": { "spec": inner } });
    let [v3, v2] = published(schema.clone()).await;
    assert_eq!(v3, schema);
    let open = json!({ "description": "Open.", UNKNOWN: true });
    assert_eq!(
        v2,
        json!({ "type": "object", "properties": { "spec": open } })
    );
}

#[tokio::test]
async fn an_embedded_object_has_the_fields_of_every_object() {
    let embedded = "x-kubernetes-embedded-resource";
    let schema = json!({ "type": "object", "properties": {
        "closed": { "type": "object", embedded: true, "properties": { "a": { "type": "string" } } },
        "open": { "type": "object", embedded: true, UNKNOWN: true },
    } });
    let [v3, v2] = published(schema).await;
    for (schema, prefix) in [(&v3, "#/components/schemas/"), (&v2, "#/definitions/")] {
        let closed = &schema["properties"]["closed"];
        assert_eq!(closed["required"], json!(["kind", "apiVersion"]));
        assert_eq!(closed["properties"]["kind"]["type"], "string");
        let metadata = &closed["properties"]["metadata"];
        let reference = metadata
            .get("$ref")
            .unwrap_or(&metadata["allOf"][0]["$ref"]);
        assert_eq!(*reference, format!("{prefix}{OBJECT_META}"));
    }
    assert!(v3["properties"]["open"]["properties"]["kind"].is_object());
    assert_eq!(
        v2["properties"]["open"],
        json!({ embedded: true, UNKNOWN: true })
    );
}

#[tokio::test]
async fn kubectl_gets_custom_kinds_in_protobuf() {
    let api = Api::with_crontabs().await;
    let reply = api.get_as("/openapi/v2", OLD_PROTOBUF).await;
    let text = String::from_utf8_lossy(&reply.body);
    assert!(text.contains(CRONTAB) && text.contains("#/definitions/com.example.stable.v2.CronTab"));
}

#[tokio::test]
async fn a_custom_kind_named_like_a_built_in_one_has_a_schema_of_its_own() {
    let api = Api::start().await;
    let mut definition = with_schema(json!({ "type": "object", "description": "custom" }));
    definition["metadata"]["name"] = "pods.stable.example.com".into();
    definition["spec"]["names"] = json!({ "plural": "pods", "kind": "Pod" });
    api.define(definition).await;
    let v2 = api.get("/openapi/v2").await.ok();
    let v3 = api.get(V1).await.ok();
    for schemas in [&v2["definitions"], &v3["components"]["schemas"]] {
        let own = &schemas["com.example.stable.v1.Pod"];
        assert_eq!(own["description"], "custom");
        let of = json!([{ "group": "stable.example.com", "version": "v1", "kind": "Pod" }]);
        assert_eq!(own["x-kubernetes-group-version-kind"], of);
    }
    let built_in = &v2["definitions"]["io.k8s.api.core.v1.Pod"];
    assert_eq!(built_in["x-kubernetes-group-version-kind"][0]["group"], "");
    let collection = "/apis/stable.example.com/v1/namespaces/{namespace}/pods";
    let read = &v3["paths"][collection]["get"]["responses"]["200"]["content"]["application/json"];
    let list = read["schema"]["$ref"].as_str().unwrap();
    assert!(list.ends_with("/com.example.stable.v1.PodList"), "{list}");
    assert!(v2["paths"]["/api/v1/pods"].is_object());
}
