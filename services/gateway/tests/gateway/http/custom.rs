//! Objects of custom kinds.

use axum::body::Body;
use http::header::{CONTENT_TYPE, WARNING};
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::api::{Api, PROTOBUF, Reply};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub const CRONTABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";
const CRONTABS_V2: &str = "/apis/stable.example.com/v2/namespaces/default/crontabs";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "cronSpec": { "type": "string", "pattern": r"^\S+ \S+$" },
                    "image": { "type": "string", "default": "busybox" },
                    "replicas": { "type": "integer", "minimum": 0 },
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": { "type": "string" },
                                "port": { "type": "integer" },
                            },
                        },
                    },
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "replicas": { "type": "integer" },
                    "selector": { "type": "string" },
                },
            },
        },
    })
}

fn version(name: &str, storage: bool) -> Value {
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "schema": { "openAPIV3Schema": schema() },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "selectableFields": [{ "jsonPath": ".spec.image" }],
        "additionalPrinterColumns": [
            { "name": "Spec", "type": "string", "jsonPath": ".spec.cronSpec" },
            { "name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas" },
            { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
        ],
    })
}

pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "crontabs.stable.example.com" },
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "crontabs",
                "singular": "crontab",
                "kind": "CronTab",
                "shortNames": ["ct"],
                "categories": ["all"],
            },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

pub fn crontab(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1",
        "kind": "CronTab",
        "metadata": { "name": name },
        "spec": spec,
    })
}

pub fn path(name: &str) -> String {
    format!("{CRONTABS}/{name}")
}

impl Api {
    /// Starts a gateway that serves CronTabs.
    pub async fn with_crontabs() -> Self {
        let api = Self::start().await;
        api.define(definition()).await;
        api
    }

    /// Creates a definition, and establishes it as the controller of names does.
    pub async fn define(&self, definition: Value) {
        let mut created = self.post(DEFINITIONS, definition).await.ok();
        let path = format!(
            "{DEFINITIONS}/{}",
            created["metadata"]["name"].as_str().unwrap()
        );
        created["status"]["acceptedNames"] = created["spec"]["names"].clone();
        created["status"]["conditions"] = json!([
            { "type": "NamesAccepted", "status": "True" },
            { "type": "Established", "status": "True" },
        ]);
        self.put(&format!("{path}/status"), created).await.ok();
        self.get(&path).await.ok();
    }

    pub async fn crontab(&self, name: &str, spec: Value) -> Reply {
        self.post(CRONTABS, crontab(name, spec)).await
    }
}

#[tokio::test]
async fn a_custom_object_is_written_and_read_like_any_other() {
    let api = Api::with_crontabs().await;
    let created = api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    assert_eq!(created["kind"], "CronTab");
    assert_eq!(created["spec"]["image"], "busybox");
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(api.get(&path("a")).await.ok(), created);
    let list = api.get(CRONTABS).await.ok();
    assert_eq!(list["kind"], "CronTabList");
    assert_eq!(list["items"], json!([created]));
    let patch = json!({ "spec": { "replicas": 2 } });
    let merged = api.patch(&path("a"), "merge-patch+json", patch).await.ok();
    assert_eq!(merged["metadata"]["generation"], 2);
    assert_eq!(merged["spec"]["replicas"], 2);
    let deleted = api.delete(&path("a")).await.ok();
    assert_eq!(deleted["status"], "Success");
    api.get(&path("a")).await.refused(404, "NotFound");
}

/// Many operators use such finalizers. Upstream refuses them for built-in kinds only.
#[tokio::test]
async fn a_finalizer_of_a_custom_object_needs_no_domain() {
    let api = Api::with_crontabs().await;
    let mut held = crontab("a", json!({ "cronSpec": "* *" }));
    held["metadata"]["finalizers"] = json!(["held"]);
    api.post(CRONTABS, held.clone()).await.ok();
    let deleting = api.delete(&path("a")).await.ok();
    assert_eq!(deleting["metadata"]["finalizers"], json!(["held"]));
    held["metadata"]["finalizers"] = json!(["not held"]);
    api.post(CRONTABS, held).await.refused(422, "Invalid");
}

#[tokio::test]
async fn a_custom_kind_is_served_as_long_as_its_definition_exists() {
    let api = Api::start().await;
    api.get(CRONTABS).await.refused(404, "NotFound");
    api.define(definition()).await;
    api.get(CRONTABS).await.ok();
    let resources = api.get("/apis/stable.example.com/v1").await.ok();
    let names = resources["resources"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["crontabs", "crontabs/status", "crontabs/scale"]);
    let groups = api.get("/apis/stable.example.com").await.ok();
    assert_eq!(groups["preferredVersion"]["version"], "v2");
}

#[tokio::test]
async fn every_version_serves_every_object() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    let path = format!("{CRONTABS_V2}/a");
    let second = api.get(&path).await.ok();
    assert_eq!(second["apiVersion"], "stable.example.com/v2");
    let mut changed = second.clone();
    changed["spec"]["replicas"] = 4.into();
    let written = api.put(&path, changed).await.ok();
    assert_eq!(written["apiVersion"], "stable.example.com/v2");
    let first = api.get(&self::path("a")).await.ok();
    assert_eq!(first["apiVersion"], "stable.example.com/v1");
    assert_eq!(first["spec"]["replicas"], 4);
}

#[tokio::test]
async fn fields_without_a_schema_are_dropped_and_refused_if_asked() {
    let api = Api::with_crontabs().await;
    let spec = json!({ "cronSpec": "* *", "color": "red" });
    let created = api.crontab("a", spec.clone()).await.ok();
    assert_eq!(created["spec"].get("color"), None);
    let strict = format!("{CRONTABS}?fieldValidation=Strict");
    let refused = api.post(&strict, crontab("b", spec)).await;
    let message = refused.refused(400, "BadRequest");
    assert!(
        message.contains(r#"strict decoding error: unknown field "spec.color""#),
        "{message}"
    );
}

#[tokio::test]
async fn an_object_that_its_schema_forbids_is_invalid() {
    let api = Api::with_crontabs().await;
    let refused = api
        .crontab("a", json!({ "cronSpec": "x", "replicas": -1 }))
        .await;
    let message = refused.refused(422, "Invalid");
    assert!(
        message
            .contains(r#"spec.cronSpec: Invalid value: "x": spec.cronSpec in body should match"#),
        "{message}"
    );
    assert!(message.contains("spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"), "{message}");
    let refused = api.crontab("a", json!({ "cronSpec": 5 })).await;
    let message = refused.refused(422, "Invalid");
    assert!(
        message.contains(r#"must be of type string: "integer""#),
        "{message}"
    );
}

#[tokio::test]
async fn the_status_and_the_scale_are_parts_of_their_own() {
    let api = Api::with_crontabs().await;
    let mut body = crontab("a", json!({ "cronSpec": "* *", "replicas": 1 }));
    body["status"] = json!({ "replicas": 9 });
    let mut created = api.post(CRONTABS, body).await.ok();
    assert_eq!(created.get("status"), None);
    created["status"] = json!({ "replicas": 1, "selector": "app=a" });
    created["spec"]["replicas"] = 7.into();
    let written = api
        .put(&format!("{}/status", path("a")), created)
        .await
        .ok();
    assert_eq!(written["spec"]["replicas"], 1);
    assert_eq!(written["status"]["replicas"], 1);
    assert_eq!(written["metadata"]["generation"], 1);
    let scale = format!("{}/scale", path("a"));
    let read = api.get(&scale).await.ok();
    assert_eq!(read["kind"], "Scale");
    assert_eq!(
        read["status"],
        json!({ "replicas": 1, "selector": "app=a" })
    );
    let patch = json!({ "spec": { "replicas": 3 } });
    let scaled = api.patch(&scale, "merge-patch+json", patch).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    assert_eq!(api.get(&path("a")).await.ok()["spec"]["replicas"], 3);
}

/// Checks RF4.
#[tokio::test]
async fn the_scale_of_an_object_without_replicas_cannot_be_read_but_set() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    let scale = format!("{}/scale", path("a"));
    let message = api.get(&scale).await.refused(500, "InternalError");
    assert_eq!(
        message,
        r#"Internal error occurred: the spec replicas field ".spec.replicas" does not exist"#
    );
    let patch = json!({ "spec": { "replicas": 3 } });
    let scaled = api.patch(&scale, "merge-patch+json", patch).await.ok();
    assert_eq!(scaled["spec"]["replicas"], 3);
    assert_eq!(api.get(&scale).await.ok()["spec"]["replicas"], 3);
}

/// Checks RF2: strict validation and server-side apply refuse only what is not kept.
#[tokio::test]
async fn a_field_that_is_kept_is_not_refused() {
    let api = Api::start().await;
    let mut definition = definition();
    let books = json!({
        "type": "array",
        "x-kubernetes-preserve-unknown-fields": true,
        "items": { "type": "object", "properties": { "title": { "type": "string" } } },
    });
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["books"] =
            books.clone();
    }
    api.define(definition).await;
    let spec = json!({ "cronSpec": "* *", "books": [{ "title": "a", "pages": 3 }] });
    let strict = format!("{CRONTABS}?fieldValidation=Strict");
    let created = api.post(&strict, crontab("a", spec.clone())).await.ok();
    assert_eq!(created["spec"]["books"][0]["pages"], 3);
    let url = format!("{}?fieldManager=one&force=true", path("a"));
    let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
    let applied = api.send(request, crontab("a", spec).to_string()).await.ok();
    assert_eq!(applied["spec"]["books"][0]["pages"], 3);
    let mut odd = crontab("b", json!({ "cronSpec": "* *", "odd": 1 }));
    odd["metadata"]["nam"] = "x".into();
    let refused = api.post(&strict, odd).await;
    let message = refused.refused(400, "BadRequest");
    assert!(
        message.ends_with(r#"unknown field "metadata.nam", unknown field "spec.odd""#),
        "{message}"
    );
}

#[tokio::test]
async fn a_configuration_is_applied_by_the_schema() {
    let api = Api::with_crontabs().await;
    let apply = async |manager: &str, spec: Value| {
        let url = format!("{}?fieldManager={manager}", path("a"));
        let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
        api.send(request, crontab("a", spec).to_string()).await
    };
    let http = json!({ "name": "http", "port": 80 });
    let dns = json!({ "name": "dns", "port": 53 });
    let created = apply("one", json!({ "cronSpec": "* *", "ports": [http] })).await;
    assert_eq!(created.code, StatusCode::CREATED);
    let both = apply("two", json!({ "ports": [dns] })).await.ok();
    assert_eq!(both["spec"]["ports"], json!([http, dns]));
    let again = apply("two", json!({ "ports": [dns] })).await.ok();
    assert_eq!(
        again["metadata"]["resourceVersion"],
        both["metadata"]["resourceVersion"]
    );
    let conflict = apply("two", json!({ "cronSpec": "1 1" })).await;
    let message = conflict.refused(409, "Conflict");
    assert!(
        message.contains(r#"conflict with "one": .spec.cronSpec"#),
        "{message}"
    );
    let unknown = apply("two", json!({ "color": "red" })).await;
    let message = unknown.refused(400, "BadRequest");
    assert!(
        message.ends_with(".spec.color: field not declared in schema"),
        "{message}"
    );
}

#[tokio::test]
async fn managers_of_all_versions_own_the_same_fields() {
    let api = Api::with_crontabs().await;
    let apply = async |collection: &str, manager: &str, version: &str, spec: Value| {
        let mut config = crontab("a", spec);
        config["apiVersion"] = format!("stable.example.com/{version}").into();
        let url = format!("{collection}/a?fieldManager={manager}");
        let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
        api.send(request, config.to_string()).await
    };
    let both = json!({ "cronSpec": "* *", "replicas": 1 });
    apply(CRONTABS, "one", "v1", both).await.ok();
    let conflict = apply(CRONTABS_V2, "two", "v2", json!({ "replicas": 2 })).await;
    let message = conflict.refused(409, "Conflict");
    assert!(
        message.contains(r#"conflict with "one": .spec.replicas"#),
        "{message}"
    );
    let fewer = json!({ "cronSpec": "* *" });
    let applied = apply(CRONTABS_V2, "one", "v2", fewer).await.ok();
    assert_eq!(applied["spec"].get("replicas"), None);
    let managers = &applied["metadata"]["managedFields"];
    assert_eq!(managers.as_array().unwrap().len(), 1, "{managers}");
    assert_eq!(managers[0]["apiVersion"], "stable.example.com/v2");
}

#[tokio::test]
async fn a_table_has_the_columns_of_the_definition() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *", "replicas": 2 }))
        .await
        .ok();
    let table = api
        .get_as(CRONTABS, "application/json;as=Table;v=v1;g=meta.k8s.io")
        .await
        .ok();
    let names = table["columnDefinitions"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Name", "Spec", "Replicas", "Age"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[0], &cells[1], &cells[2]),
        (&json!("a"), &json!("* *"), &json!(2))
    );
}

#[tokio::test]
async fn objects_are_selected_by_the_fields_of_the_definition() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    api.crontab("b", json!({ "cronSpec": "* *", "image": "nginx" }))
        .await
        .ok();
    let selected = api
        .get(&format!("{CRONTABS}?fieldSelector=spec.image%3Dnginx"))
        .await
        .ok();
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);
    assert_eq!(selected["items"][0]["metadata"]["name"], "b");
    let refused = api
        .get(&format!("{CRONTABS}?fieldSelector=spec.cronSpec%3Dx"))
        .await;
    let message = refused.refused(400, "BadRequest");
    assert_eq!(message, "field label not supported: spec.cronSpec");
}

#[tokio::test]
async fn a_strategic_merge_patch_needs_a_kind_with_merge_rules() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    let patch = json!({ "spec": { "replicas": 2 } });
    let refused = api
        .patch(&path("a"), "strategic-merge-patch+json", patch)
        .await;
    let message = refused.refused(415, "UnsupportedMediaType");
    assert_eq!(
        message,
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
}

#[tokio::test]
async fn a_custom_object_has_no_protobuf_encoding() {
    let api = Api::with_crontabs().await;
    api.crontab("a", json!({ "cronSpec": "* *" })).await.ok();
    for path in [path("a").as_str(), CRONTABS] {
        let refused = api.get_as(path, PROTOBUF).await;
        assert_eq!(refused.code, StatusCode::NOT_ACCEPTABLE);
        let fallback = format!("{PROTOBUF},application/json");
        let json = api.get_as(path, &fallback).await;
        assert_eq!(json.ok()["apiVersion"], "stable.example.com/v1");
    }
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let metadata = api.get_as(&path("a"), &metadata).await;
    assert_eq!(metadata.headers[CONTENT_TYPE], PROTOBUF);
    let request = Request::post(CRONTABS).header(CONTENT_TYPE, PROTOBUF);
    // An envelope with a type (field 1) of `apiVersion` and `kind`, and no object.
    let api_version = b"\x0a\x15stable.example.com/v1";
    let start = b"k8s\0\x0a\x20".as_slice();
    let named = [start, api_version, b"\x12\x07CronTab"].concat();
    let message = api.send(request, named).await.refused(400, "BadRequest");
    assert_eq!(
        message,
        r#"CronTab in version "v1" cannot be handled as a CronTab: object *unstructured.Unstructured does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"#
    );
}

#[tokio::test]
async fn every_response_warns_of_a_deprecated_version() {
    let api = Api::start().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["deprecated"] = true.into();
    api.define(definition).await;
    let warning =
        r#"299 - "stable.example.com/v1 CronTab is deprecated; use stable.example.com/v2 CronTab""#;
    let created = api.crontab("a", json!({ "cronSpec": "* *" })).await;
    let missing = api.get(&path("b")).await;
    let list = api.get(CRONTABS).await;
    let watch = format!("{CRONTABS}?watch=1&timeoutSeconds=0");
    let watch = api.open(Request::get(watch), Body::empty()).await;
    for headers in [
        created.headers,
        missing.headers,
        list.headers,
        watch.headers().clone(),
    ] {
        let warnings: Vec<_> = headers.get_all(WARNING).iter().collect();
        assert_eq!(warnings, [warning]);
    }
    let newer = api.get(CRONTABS_V2).await;
    assert_eq!(newer.headers.get(WARNING), None);
}

#[tokio::test]
async fn a_definition_may_have_its_own_warning() {
    let api = Api::start().await;
    let mut definition = definition();
    definition["spec"]["versions"][0]["deprecated"] = true.into();
    definition["spec"]["versions"][0]["deprecationWarning"] = "go on".into();
    api.define(definition).await;
    let list = api.get(CRONTABS).await;
    assert_eq!(list.headers[WARNING], r#"299 - "go on""#);
}

/// Upstream's own cases (`testFinalizerValidationApplyCreateAndUpdateCRD`).
#[tokio::test]
async fn a_new_finalizer_without_a_domain_and_a_path_is_warned_of() {
    let api = Api::with_crontabs().await;
    let write = async |finalizers: &[&str]| {
        let mut applied = crontab("a", json!({ "cronSpec": "* *" }));
        applied["metadata"]["finalizers"] = json!(finalizers);
        let url = format!("{}?fieldManager=one", path("a"));
        let request = Request::patch(url).header(CONTENT_TYPE, "application/apply-patch+yaml");
        let reply = api.send(request, applied.to_string()).await;
        reply.ok();
        let warnings = reply.headers.get_all(WARNING).iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned());
        warnings.collect::<Vec<_>>()
    };
    let prefer = |name: &str, path: &str| {
        format!(
            r#"299 - "metadata.finalizers: \"{name}\": prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers""#
        )
    };
    let none: [String; 0] = [];
    assert_eq!(write(&["kubernetes.io/valid-finalizer"]).await, none);
    let plain = "invalid-finalizer";
    assert_eq!(write(&[plain]).await, [prefer(plain, "")]);
    // Only what is new is warned of.
    let other = "another-invalid-finalizer";
    assert_eq!(write(&[plain, other]).await, [prefer(other, "")]);
    let dotted = "finalizer.without.valid-path.io";
    let warned = write(&[other, dotted, "foregroundDeletion"]).await;
    assert_eq!(warned, [prefer(dotted, " including a path (/)")]);
    let mut created = crontab("b", json!({}));
    created["metadata"]["finalizers"] = json!(["b", "a"]);
    let reply = api.post(CRONTABS, created).await;
    let mut warnings = reply.headers.get_all(WARNING).iter();
    let expected = [prefer("a", ""), prefer("b", "")];
    assert!(warnings.by_ref().eq(&expected), "{reply:?}");
    let patch = json!({ "metadata": { "finalizers": ["b"] } });
    let reply = api.patch(&path("b"), "merge-patch+json", patch).await;
    assert!(!reply.headers.contains_key(WARNING));
}
