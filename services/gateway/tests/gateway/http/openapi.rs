//! OpenAPI v2, and the caching of OpenAPI documents.

use axum::body::Body;
use flate2::read::GzDecoder;
use http::Request;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

use crate::http::api::Api;

const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

#[tokio::test]
async fn v2_has_every_group_in_one_document() {
    let api = Api::start().await;
    let document = api.get("/openapi/v2").await.ok();
    assert_eq!(document["swagger"], "2.0");
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][path]["patch"];
    let of = &patch["x-kubernetes-group-version-kind"];
    assert_eq!(of["kind"], "Deployment");
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    let mut parameters = patch["parameters"].as_array().unwrap().iter();
    let validation = parameters.find(|parameter| parameter["name"] == "fieldValidation");
    let mut validation = validation.unwrap().clone();
    assert!(validation["description"].take().is_string());
    let expected = json!({
        "name": "fieldValidation", "in": "query", "type": "string", "uniqueItems": true, "description": null,
    });
    assert_eq!(validation, expected);
    let spec = &document["definitions"]["io.k8s.api.core.v1.PodSpec"]["properties"];
    let containers = &spec["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    let item = &containers["items"]["$ref"];
    assert_eq!(item, "#/definitions/io.k8s.api.core.v1.Container");
    let list = &document["definitions"]["io.k8s.api.core.v1.ConfigMapList"];
    let of = &list["x-kubernetes-group-version-kind"][0];
    assert_eq!(of["kind"], "ConfigMapList");
}

#[tokio::test]
async fn every_reference_in_v2_resolves() {
    let api = Api::start().await;
    let document = api.get("/openapi/v2").await.ok();
    let text = document.to_string();
    assert!(!text.contains("#/components/"));
    for rest in text.split("#/definitions/").skip(1) {
        let name = rest.split('"').next().unwrap();
        assert!(document["definitions"][name].is_object(), "{name}");
    }
}

#[tokio::test]
async fn kubectl_gets_v2_in_protobuf() {
    let api = Api::start().await;
    for accept in [OLD_PROTOBUF, PROTOBUF] {
        let reply = api.get_as("/openapi/v2", accept).await;
        assert_eq!(reply.headers[CONTENT_TYPE], PROTOBUF);
        // Field 1 is the version of OpenAPI.
        assert!(reply.body.starts_with(b"\x0a\x032.0"));
    }
    let reply = api.get_as("/openapi/v2", "application/yaml").await;
    assert_eq!(reply.code, 406);
}

#[tokio::test]
async fn a_client_that_has_a_document_does_not_receive_it_again() {
    let api = Api::start().await;
    for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"] {
        let first = api.get(path).await;
        let etag = &first.headers[ETAG];
        let request = Request::get(path).header(IF_NONE_MATCH, etag);
        let second = api.send(request, Body::empty()).await;
        assert_eq!(second.code, 304, "{path}");
        assert_eq!(second.headers[ETAG], etag);
        assert!(second.body.is_empty());
    }
}

#[tokio::test]
async fn documents_are_compressed_if_the_client_accepts_it() {
    let api = Api::start().await;
    let path = "/openapi/v3/api/v1";
    let request = Request::get(path).header(ACCEPT_ENCODING, "gzip");
    let small = api.send(request, Body::empty()).await;
    assert_eq!(small.headers[CONTENT_ENCODING], "gzip");
    let document: Value = serde_json::from_reader(GzDecoder::new(&*small.body)).unwrap();
    let plain = api.get(path).await;
    assert_eq!(plain.headers.get(CONTENT_ENCODING), None);
    assert_eq!(document, plain.ok());
}

#[tokio::test]
async fn operations_have_unique_identifiers() {
    let api = Api::start().await;
    let document = api.get("/openapi/v2").await.ok();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|path| path.as_object().unwrap().values());
    let mut ids: Vec<_> = operations
        .filter_map(|operation| operation.get("operationId")?.as_str())
        .collect();
    let all = ids.len();
    assert!(ids.contains(&"readAppsV1NamespacedDeploymentScale"));
    assert!(ids.contains(&"listCoreV1PodForAllNamespaces"));
    assert!(ids.contains(&"deleteRbacAuthorizationV1CollectionClusterRole"));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[tokio::test]
async fn the_schema_of_schemas_refers_to_itself() {
    let api = Api::start().await;
    let v2 = api.get("/openapi/v2").await.ok();
    let path = "/openapi/v3/apis/apiextensions.k8s.io/v1";
    let v3 = api.get(path).await.ok();
    for (schemas, prefix) in [
        (&v2["definitions"], "#/definitions/"),
        (&v3["components"]["schemas"], "#/components/schemas/"),
    ] {
        let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
        let name = format!("{package}.JSONSchemaProps");
        let properties = &schemas[&name]["properties"];
        let inner = &properties["properties"]["additionalProperties"]["$ref"];
        assert_eq!(*inner, format!("{prefix}{name}"));
        assert_eq!(properties["$ref"]["type"], "string");
        assert_eq!(properties["maximum"]["type"], "number");
        let list = &properties["x-kubernetes-validations"];
        assert_eq!(list["x-kubernetes-list-map-keys"], json!(["rule"]));
        let any = &schemas[format!("{package}.JSONSchemaPropsOrArray")];
        assert!(any["description"].is_string() && any["type"].is_null());
    }
}

/// Checks T2: required fields follow upstream's comments, and fields of later releases are in no schema.
#[tokio::test]
async fn schemas_require_what_kubernetes_requires() {
    let api = Api::start().await;
    let v2 = api.get("/openapi/v2").await.ok();
    let definitions = &v2["definitions"];
    let schema = |name: &str| &definitions[format!("io.k8s.api.{name}")];
    for (name, required) in [
        ("apps.v1.StatefulSetSpec", json!(["selector", "template"])),
        ("apps.v1.DeploymentSpec", json!(["selector", "template"])),
        ("core.v1.Container", json!(["name"])),
        ("core.v1.GRPCAction", json!(["port"])),
        ("rbac.v1.Role", json!(null)),
        ("rbac.v1.ClusterRole", json!(null)),
        ("rbac.v1.RoleRef", json!(["kind", "name"])),
        ("networking.v1.NetworkPolicySpec", json!(null)),
        (
            "core.v1.AzureFilePersistentVolumeSource",
            json!(["secretName", "shareName"]),
        ),
        ("discovery.v1.EndpointSlice", json!(["addressType"])),
        ("batch.v1.CronJob", json!(["spec"])),
        ("autoscaling.v2.HorizontalPodAutoscaler", json!(["spec"])),
        ("networking.v1.IPAddress", json!(["spec"])),
        (
            "core.v1.PodCertificateProjection",
            json!(["keyType", "signerName"]),
        ),
        (
            "admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec",
            json!(["policyName", "validationActions"]),
        ),
    ] {
        assert!(schema(name)["properties"].is_object(), "{name}");
        assert_eq!(schema(name)["required"], required, "{name}");
    }
    for (name, field) in [
        ("batch.v1.JobSpec", "scheduling"),
        ("core.v1.PodSpec", "evictionResponders"),
        ("core.v1.SecretVolumeSource", "defaultUser"),
    ] {
        assert_eq!(schema(name)["properties"][field], Value::Null, "{name}");
    }
    for later in [
        "core.v1.EvictionResponder",
        "batch.v1.JobSchedulingConfiguration",
    ] {
        assert_eq!(*schema(later), Value::Null, "{later}");
    }
    let aggregator = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService";
    assert!(definitions[aggregator].is_object());
}

/// Checks T2: fields have their known values; operations, parameters and the items of lists have descriptions.
#[tokio::test]
async fn schemas_have_enums_and_operations_have_descriptions() {
    let api = Api::start().await;
    let v2 = api.get("/openapi/v2").await.ok();
    let v3 = api.get("/openapi/v3/api/v1").await.ok();
    for schemas in [&v2["definitions"], &v3["components"]["schemas"]] {
        let container = &schemas["io.k8s.api.core.v1.Container"]["properties"];
        let policies = json!(["Always", "IfNotPresent", "Never"]);
        assert_eq!(container["imagePullPolicy"]["enum"], policies);
        let claim = &schemas["io.k8s.api.core.v1.PersistentVolumeClaimSpec"]["properties"];
        let modes = &claim["accessModes"]["items"]["enum"];
        assert!(modes.as_array().unwrap().contains(&json!("ReadWriteOnce")));
        let list = &schemas["io.k8s.api.core.v1.ServiceList"]["properties"]["items"];
        let text = "List of services: all that were asked for, or a page.";
        assert_eq!(list["description"], text);
    }
    let strategy = &v2["definitions"]["io.k8s.api.apps.v1.DeploymentStrategy"]["properties"];
    assert_eq!(
        strategy["type"]["enum"],
        json!(["Recreate", "RollingUpdate"])
    );
    let object = "/api/v1/namespaces/{namespace}/pods/{name}";
    for (path, method, description) in [
        ("", "get", "read the specified Pod"),
        ("", "patch", "partially update the specified Pod"),
        ("", "delete", "delete a Pod"),
        ("/status", "put", "replace status of the specified Pod"),
        ("/eviction", "post", "create eviction of a Pod"),
        ("/exec", "get", "connect GET requests to exec of Pod"),
    ] {
        let operation = &v2["paths"][format!("{object}{path}")][method];
        assert_eq!(operation["description"], description);
    }
    let all = &v2["paths"]["/api/v1/events"]["get"];
    assert_eq!(all["description"], "list or watch objects of kind Event");
    let events = &v2["paths"]["/api/v1/namespaces/{namespace}/events"];
    assert_eq!(events["post"]["description"], "create an Event");
    let parameters = v2["paths"].as_object().unwrap().values();
    let parameters = parameters.flat_map(|path| {
        let operations = path.as_object().unwrap().values();
        let own = operations.filter_map(|operation| operation.get("parameters")?.as_array());
        let common = path["parameters"].as_array();
        own.chain(common).flatten().collect::<Vec<_>>()
    });
    for parameter in parameters.filter(|parameter| parameter["in"] != "body") {
        assert!(parameter["description"].is_string(), "{parameter}");
    }
}

/// Checks E5: a schema without fields has no `properties`, as Go's libraries leave an empty object out.
#[tokio::test]
async fn no_schema_has_an_empty_list_of_fields() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.ok();
    for path in index["paths"].as_object().unwrap().keys() {
        let document = api.get(&format!("/openapi/v3/{path}")).await.ok();
        let Some(schemas) = document["components"]["schemas"].as_object() else {
            continue;
        };
        for (name, schema) in schemas {
            let is_empty = schema["properties"]
                .as_object()
                .is_some_and(|all| all.is_empty());
            assert!(!is_empty, "{path}: {name}");
        }
    }
}
