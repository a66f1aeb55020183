//! The OpenAPI document of v2 with what other servers serve.

use http::header::{ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

use super::{Discovery, FLUNDERS, Plane, SERVICE};

const V2: &str = "/openapi/v2";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const FLUNDER: &str = "com.example.wardle.v1alpha1.Flunder";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

fn reference(to: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{to}") })
}

/// Returns the document of a server whose Flunders have a description.
fn document(description: &str) -> Value {
    let get = |to: &str| {
        let ok = json!({ "description": "OK", "schema": reference(to) });
        json!({ "get": { "description": "read", "parameters": [{ "$ref": "#/parameters/pretty" }], "responses": { "200": ok } } })
    };
    let kind = json!([{ "group": "wardle.example.com", "version": "v1alpha1", "kind": "Flunder" }]);
    json!({
        "swagger": "2.0",
        "info": { "title": "wardle", "version": "v1" },
        "paths": { FLUNDERS: get(FLUNDER), "/apis/wardle.example.com/v1beta1/flunders": get("Other"), "/version": get("Other") },
        "definitions": {
            FLUNDER: { "description": description, "type": "object", "properties": { "metadata": reference(OBJECT_META) }, "x-kubernetes-group-version-kind": kind },
            OBJECT_META: { "type": "object", "properties": { "name": { "type": "string" } } },
            "Other": { "type": "string" },
        },
        "parameters": { "pretty": { "in": "query", "name": "pretty", "type": "string", "uniqueItems": true } },
    })
}

/// Starts a gateway and a server with a document.
async fn plane(document: &Value) -> Plane {
    let plane = Plane::unregistered(Discovery::List).await;
    plane.extension.documents(document);
    plane.register(plane.spec(), true).await;
    plane.until("Passed").await;
    plane
}

impl Plane {
    /// Has the server checked until it is asked for changes since its last document, so that the gateway has that.
    async fn until_fetched(&self) {
        let path = "/api/v1/namespaces/default/services/extension";
        let etag = self.extension.swagger_etag();
        for number in 0.. {
            let label = json!({ "metadata": { "labels": { "check": number.to_string() } } });
            self.api.patch(path, "merge-patch+json", label).await.ok();
            let known = self.extension.headers(V2).remove(IF_NONE_MATCH);
            if known.is_some_and(|known| known == *etag) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Returns the description of Flunders.
    async fn description(&self) -> Value {
        let mut document = self.api.get(V2).await.ok();
        document["definitions"][FLUNDER]["description"].take()
    }
}

#[tokio::test]
async fn the_paths_of_the_version_and_what_they_refer_to_are_merged() {
    let plane = plane(&document("a")).await;
    let reply = plane.api.get(V2).await;
    let etag = reply.headers[ETAG].clone();
    let merged = reply.ok();
    let paths = &merged["paths"];
    assert_eq!(paths[FLUNDERS]["get"]["description"], "read");
    assert!(paths["/apis/wardle.example.com/v1beta1/flunders"].is_null());
    assert!(paths["/apis/apps/v1/deployments"].is_object());
    assert_ne!(paths["/version"]["get"]["description"], "read");
    assert_eq!(merged["info"]["title"], "Setpoint");
    let definitions = &merged["definitions"];
    let renamed = format!("{OBJECT_META}_v2");
    assert_eq!(
        definitions[FLUNDER]["properties"]["metadata"],
        reference(&renamed)
    );
    assert!(definitions[OBJECT_META]["properties"]["uid"].is_object());
    assert_eq!(
        definitions[&renamed]["properties"]["name"]["type"],
        "string"
    );
    assert!(definitions["Other"].is_null());
    assert_eq!(merged["parameters"]["pretty"]["name"], "pretty");

    let protobuf = plane.api.get_as(V2, PROTOBUF).await.body;
    for text in [FLUNDERS, FLUNDER, &renamed, "#/parameters/pretty"] {
        let mut windows = protobuf.windows(text.len());
        assert!(windows.any(|window| window == text.as_bytes()), "{text}");
    }
    plane.api.delete(SERVICE).await.ok();
    let is_gone = |reply: &crate::http::api::Reply| reply.json()["definitions"][FLUNDER].is_null();
    let without = plane.api.eventually(V2, is_gone).await;
    assert_ne!(without.headers[ETAG], etag);
    assert!(without.json()["parameters"].is_null());
}

#[tokio::test]
async fn a_document_that_cannot_be_read_leaves_that_of_before() {
    let plane = plane(&document("a")).await;
    let mut dangling = document("b");
    dangling["definitions"][OBJECT_META]["properties"]["name"] = reference("Nothing");
    let of_wrong_type = json!({ "paths": { FLUNDERS: [] } });
    for malformed in [
        "{".to_owned(),
        of_wrong_type.to_string(),
        dangling.to_string(),
    ] {
        plane.extension.documents(malformed);
        plane.until_fetched().await;
        assert_eq!(plane.description().await, "a");
    }
    plane.extension.documents(document("c"));
    plane.until_fetched().await;
    assert_eq!(plane.description().await, "c");
}
