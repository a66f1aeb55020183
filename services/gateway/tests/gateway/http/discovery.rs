//! Discovery, OpenAPI and unknown paths.

use prost::Message as _;
use serde::Deserialize as _;
use serde_json::Value;
use setpoint_codec::envelope;
use setpoint_proto::apidiscovery::ApiGroupDiscoveryList;
use setpoint_proto::meta::ApiResourceList;

use crate::http::api::{Api, PROTOBUF};

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn named<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let mut items = list.as_array().unwrap().iter();
    items
        .find(|item| item[key] == name)
        .unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[tokio::test]
async fn legacy_discovery_lists_every_kind() {
    let api = Api::start().await;
    assert_eq!(api.get("/api").await.ok()["versions"][0], "v1");
    let groups = api.get("/apis").await.ok();
    let apps = named(&groups["groups"], "name", "apps");
    assert_eq!(apps["preferredVersion"]["groupVersion"], "apps/v1");
    assert_eq!(api.get("/apis/apps").await.ok()["kind"], "APIGroup");
    let core = api.get("/api/v1").await.ok();
    assert_eq!(
        named(&core["resources"], "name", "pods")["shortNames"][0],
        "po"
    );
    assert_eq!(
        named(&core["resources"], "name", "nodes")["namespaced"],
        false
    );
    assert_eq!(
        named(&core["resources"], "name", "pods/binding")["kind"],
        "Binding"
    );
    let apps = api.get("/apis/apps/v1").await.ok();
    let scale = named(&apps["resources"], "name", "deployments/scale");
    assert_eq!(
        (&scale["group"], &scale["kind"]),
        (&"autoscaling".into(), &"Scale".into())
    );
}

/// Checks T1: upstream's tests compare the text.
#[tokio::test]
async fn the_keys_of_documents_have_the_order_of_go() {
    let api = Api::start().await;
    let verbs = r#"["create","delete","deletecollection","get","list","patch","update","watch"]"#;
    let resource = |names: &str, kind: &str| {
        format!(r#"{{{names},"namespaced":true,"kind":"{kind}","verbs":{verbs},"shortNames":"#)
    };
    let maps = r#""name":"configmaps","singularName":"configmap""#;
    let pods = r#""name":"pods","singularName":"pod""#;
    for (path, accept, expected) in [
        ("/api", "", r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"#.to_owned()),
        ("/api/v1", "", r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"#.to_owned()),
        ("/api/v1", "", resource(maps, "ConfigMap") + r#"["cm"],"storageVersionHash":""#),
        ("/api/v1", "", resource(pods, "Pod") + r#"["po"],"categories":["all"],"storageVersionHash":""#),
        ("/apis", "", r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"#.to_owned()),
        ("/apis/apps", "", r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#.to_owned()),
        ("/apis/apps/v1", "", r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":[{"name":"#.to_owned()),
        ("/apis", AGGREGATED, r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{"name":"#.to_owned()),
        ("/apis", AGGREGATED, r#"{"resource":"deployments","responseKind":{"group":"apps","version":"v1","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["#.to_owned()),
        ("/api/v1/namespaces", "", r#"{"kind":"NamespaceList","apiVersion":"v1","metadata":{"resourceVersion":""#.to_owned()),
        ("/api/v1/namespaces", TABLE, r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":""#.to_owned()),
        ("/api/v1/namespaces", TABLE, r#""columnDefinitions":[{"name":"Name","type":"string","format":"name","description":""#.to_owned()),
        ("/api/v1/namespaces", TABLE, r#""object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":""#.to_owned()),
        ("/version", "", "{\n  \"major\": \"1\",\n  \"minor\": \"36\",\n  \"emulationMajor\": \"1\",\n  \"emulationMinor\": \"36\",\n  \"minCompatibilityMajor\": \"1\",\n  \"minCompatibilityMinor\": \"35\",\n  \"gitVersion\": \"v1.36.".to_owned()),
    ] {
        let reply = match accept {
            "" => api.get(path).await,
            accept => api.get_as(path, accept).await,
        };
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(text.contains(&expected), "{path}: {expected}\nnot in {text}");
    }
}

/// A JSON response ends with a newline, so that a prompt or the next response is on a line of its own.
#[tokio::test]
async fn a_json_response_ends_with_one_newline() {
    let api = Api::start().await;
    let namespace = "/api/v1/namespaces/production";
    for path in [
        namespace,
        "/api/v1/namespaces",
        "/api/v1/namespaces/none",
        "/apis",
        "/version",
    ] {
        for query in ["", "?pretty=true"] {
            let reply = api.get(&format!("{path}{query}")).await;
            let text = String::from_utf8(reply.body.to_vec()).unwrap();
            assert!(
                text.ends_with("}\n") && !text.ends_with("\n\n"),
                "{path}: {text:?}"
            );
        }
    }
}

#[tokio::test]
async fn aggregated_discovery_lists_every_kind() {
    let api = Api::start().await;
    let reply = api.get_as("/apis", AGGREGATED).await;
    let of = reply.headers["content-type"].to_str().unwrap();
    assert_eq!(
        of,
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let groups = reply.ok();
    let apps = groups["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "apps");
    let resources = &apps.unwrap()["versions"][0]["resources"];
    let deployments = named(resources, "resource", "deployments");
    assert_eq!(deployments["responseKind"]["kind"], "Deployment");
    assert_eq!(deployments["scope"], "Namespaced");
    let scale = named(&deployments["subresources"], "subresource", "scale");
    assert_eq!(scale["responseKind"]["group"], "autoscaling");
    let core = api.get_as("/api", AGGREGATED).await.ok();
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn aggregated_discovery_in_protobuf_says_the_same() {
    let api = Api::start().await;
    let accept = format!("{PROTOBUF};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    for path in ["/api", "/apis"] {
        let reply = api.get_as(path, &accept).await;
        assert_eq!(reply.headers["content-type"], *accept);
        let unknown = envelope::read(&reply.body).unwrap();
        assert_eq!(unknown.api_version, "apidiscovery.k8s.io/v2");
        assert_eq!(unknown.kind, "APIGroupDiscoveryList");
        let list = ApiGroupDiscoveryList::decode(unknown.raw).unwrap();
        let json = api.get_as(path, AGGREGATED).await.ok();
        let expected = ApiGroupDiscoveryList::deserialize(&json).unwrap();
        assert!(!list.items.is_empty());
        assert_eq!(list, expected);
    }
}

#[tokio::test]
async fn the_version_is_one_that_kubectl_knows() {
    let api = Api::start().await;
    for path in ["/version", "/version/"] {
        let version = api.get(path).await.ok();
        assert_eq!(version["major"], "1");
        assert!(version["gitVersion"].as_str().unwrap().starts_with("v1."));
    }
}

#[tokio::test]
async fn openapi_has_the_operations_and_merge_keys_of_a_kind() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"]
        .as_str()
        .unwrap();
    let reply = api.get(url).await;
    assert!(
        reply.headers["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    let document = reply.ok();
    let path = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"]["kind"],
        "Deployment"
    );
    assert_eq!(patch["x-kubernetes-action"], "patch");
    assert_eq!(
        named(&patch["parameters"], "name", "fieldValidation")["in"],
        "query"
    );
    let schemas = &document["components"]["schemas"];
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"][0], "name");
    let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"];
    assert_eq!(
        spec["required"],
        serde_json::json!(["selector", "template"])
    );
    let status = schemas["io.k8s.api.apps.v1.DeploymentStatus"]["description"].as_str();
    assert_eq!(status, Some("Written by the deployment-controller alone."));
}

#[tokio::test]
async fn every_reference_in_openapi_resolves() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.ok();
    for url in index["paths"].as_object().unwrap().values() {
        let document = api
            .get(url["serverRelativeURL"].as_str().unwrap())
            .await
            .ok();
        let text = document.to_string();
        let references = text.split("#/components/schemas/").skip(1);
        for name in references.map(|rest| rest.split('"').next().unwrap()) {
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn an_outdated_hash_redirects_to_the_current_document() {
    let api = Api::start().await;
    let reply = api.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!(reply.code, 301);
    assert!(
        reply.headers["location"]
            .to_str()
            .unwrap()
            .starts_with("/openapi/v3/apis/apps/v1?hash=")
    );
}

#[tokio::test]
async fn unknown_paths_are_refused_in_kubernetes_words() {
    let api = Api::start().await;
    for path in [
        "/nothing",
        "/apis/none.example/v1",
        "/apis/apps/v1/gadgets",
        "/openapi/v3/none",
    ] {
        let message = api.get(path).await.refused(404, "NotFound");
        assert_eq!(
            message, "the server could not find the requested resource",
            "{path}"
        );
    }
}

#[tokio::test]
async fn unsupported_methods_are_refused_in_kubernetes_words() {
    let api = Api::start().await;
    let allowed = "the server does not allow this method on the requested resource";
    for path in ["/api/v1/pods", "/version", "/api/v1"] {
        let reply = api.post(path, serde_json::json!({})).await;
        assert_eq!(reply.refused(405, "MethodNotAllowed"), allowed, "{path}");
    }
    let reply = api.get("/api/v1/namespaces/default/pods/web/binding").await;
    assert_eq!(reply.refused(405, "MethodNotAllowed"), allowed);
}

/// Checks K8.
#[tokio::test]
async fn a_trailing_slash_changes_nothing() {
    let api = Api::start().await;
    for path in [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/version",
    ] {
        let with = api.get(&format!("{path}/")).await.ok();
        assert_eq!(with, api.get(path).await.ok(), "{path}");
    }
    let roots = api.get("/").await.ok();
    let paths = roots["paths"].as_array().unwrap();
    for path in ["/api/v1", "/apis/apps", "/apis/apps/v1", "/readyz"] {
        assert!(paths.contains(&path.into()), "{roots}");
    }
}

/// Checks K20: tools that write a document again omit empty lists.
#[tokio::test]
async fn no_document_has_empty_lists_of_parameters() {
    let api = Api::start().await;
    let index = api.get("/openapi/v3").await.ok();
    for path in index["paths"].as_object().unwrap().keys() {
        let document = api.get(&format!("/openapi/v3/{path}")).await.ok();
        let text = document.to_string();
        assert!(!text.contains(r#""parameters":[]"#), "{path}");
    }
}

#[tokio::test]
async fn clients_that_have_the_aggregated_document_do_not_receive_it_again() {
    let api = Api::start().await;
    let first = api.get_as("/apis", AGGREGATED).await;
    assert_eq!(first.headers["vary"], "Accept");
    assert_eq!(first.headers["cache-control"], "public");
    let request = http::Request::get("/apis")
        .header("accept", AGGREGATED)
        .header("if-none-match", &first.headers["etag"]);
    let second = api.send(request, "").await;
    assert_eq!(second.code, 304);
    assert!(second.body.is_empty());
}

#[tokio::test]
async fn legacy_discovery_is_served_in_every_encoding() {
    let api = Api::start().await;
    for path in ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"] {
        let reply = api.get_as(path, PROTOBUF).await;
        assert_eq!(reply.headers["content-type"], PROTOBUF, "{path}");
        let read = envelope::read(&reply.body).unwrap();
        assert_eq!(read.kind, api.get(path).await.ok()["kind"], "{path}");
        let yaml = api.get_as(path, "application/yaml").await;
        let starts = ["apiVersion", "groupVersion", "kind"];
        assert!(
            starts
                .iter()
                .any(|key| yaml.body.starts_with(key.as_bytes()))
        );
        let refused = api.get_as(path, "application/cbor").await;
        refused.refused(406, "NotAcceptable");
    }
    let reply = api.get_as("/apis/apps/v1", PROTOBUF).await;
    let read = envelope::read(&reply.body).unwrap();
    let list = ApiResourceList::decode(read.raw).unwrap();
    let scale = list
        .resources
        .iter()
        .find(|one| one.name == "deployments/scale");
    assert_eq!(scale.unwrap().verbs.items, ["get", "patch", "update"]);
}

#[tokio::test]
async fn resources_have_the_hash_of_their_storage_version() {
    let api = Api::start().await;
    let core = api.get("/api/v1").await.ok();
    let pods = named(&core["resources"], "name", "pods");
    assert_eq!(pods["storageVersionHash"], "xPOwRZ+Yhw8=");
}

#[tokio::test]
async fn groups_are_in_upstreams_order() {
    let api = Api::start().await;
    let groups = api.get("/apis").await.ok();
    let names = groups["groups"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|group| group["name"].as_str().unwrap()).collect();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("apps") < place("rbac.authorization.k8s.io"));
    assert!(place("scheduling.k8s.io") < place("coordination.k8s.io"));
}
