//! Objects are reached by the paths of their own kind and scope only.

use serde_json::{Value, json};
use setpoint_proto::Reason;
use setpoint_proto::setpoint::GetRequest;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use tonic::transport::Channel;

use super::api::Api;
use super::authorization::{matrix::of_user, rule};

const GROUP: &str = "/apis/apart.example.com/v1";
/// The value of a field of the objects that are not to be seen.
const HIDDEN: &str = "hunter2";

/// Returns the definition of a custom kind with any fields.
fn definition(plural: &str, kind: &str, scope: &str) -> Value {
    json!({
        "metadata": { "name": format!("{plural}.apart.example.com") },
        "spec": {
            "group": "apart.example.com", "scope": scope,
            "names": {
                "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
                "listKind": format!("{kind}List"),
            },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            } } }],
        },
    })
}

fn object(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apart.example.com/v1", "kind": kind,
        "metadata": { "name": name }, "spec": { "value": HIDDEN },
    })
}

async fn over_grpc(api: &Api, user: &str, resource: &str, namespace: &str, name: &str) -> Reason {
    let server = api.listen().await;
    let channel = Channel::from_shared(server.url.clone()).unwrap();
    let mut client = ObjectsClient::new(channel.connect().await.unwrap());
    let request = GetRequest {
        resource: resource.into(),
        namespace: namespace.into(),
        name: name.into(),
        ..Default::default()
    };
    let refused = client.get(of_user(request, user, &[])).await.unwrap_err();
    setpoint_proto::ApiError::from(refused).reason
}

/// Checks V9 (CVE-2019-11247): rights in a namespace are none on what is in no namespace.
#[tokio::test]
async fn a_cluster_scoped_object_is_not_reached_by_a_path_of_a_namespace() {
    let api = Api::with_rbac().await;
    api.define(definition("globes", "Globe", "Cluster")).await;
    api.post(&format!("{GROUP}/globes"), object("Globe", "a"))
        .await
        .ok();
    let node = json!({ "metadata": { "name": "a" } });
    api.post("/api/v1/nodes", node).await.ok();
    api.cluster_role("a", json!([rule("get", "core", "pods")]))
        .await;
    api.role("owner", json!([rule("*", "*", "*")])).await;
    api.bind("Role", "owner", "User:jane").await;
    let own = json!({ "verb": "get", "resource": "nodes", "namespace": "default" });
    api.until_allowed(json!({ "user": "jane", "resourceAttributes": own }))
        .await;
    let jane = api.user("jane");
    for (group, plural) in [
        ("/api/v1", "nodes"),
        ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
        (GROUP, "globes"),
    ] {
        let before = api.get(&format!("{group}/{plural}/a")).await.ok();
        let within = format!("{group}/namespaces/default/{plural}");
        let body = json!({ "metadata": { "name": "a", "labels": { "stolen": "yes" } } });
        let merge = "application/merge-patch+json";
        let json = "application/json";
        for (method, path, of) in [
            ("GET", format!("{within}/a"), json),
            ("GET", within.clone(), json),
            ("GET", format!("{within}?watch=true&timeoutSeconds=1"), json),
            ("POST", within.clone(), json),
            ("PUT", format!("{within}/a"), json),
            ("PATCH", format!("{within}/a"), merge),
            ("DELETE", format!("{within}/a"), json),
            ("DELETE", within.clone(), json),
        ] {
            let reply = jane.send(method, &path, of, body.clone()).await;
            assert_eq!(reply.code, 404, "{method} {path}");
            assert_eq!(
                api.send(http::Request::builder().method(method).uri(&path), "")
                    .await
                    .code,
                404
            );
        }
        for path in [format!("{group}/{plural}/a"), format!("{group}/{plural}")] {
            let refused = jane.get(&path).await.refused(403, "Forbidden");
            assert!(refused.ends_with("at the cluster scope"), "{refused}");
        }
        assert_eq!(api.get(&format!("{group}/{plural}/a")).await.ok(), before);
    }
    for resource in ["nodes", "globes.apart.example.com"] {
        let within = over_grpc(&api, "jane", resource, "default", "a").await;
        assert_eq!(within, Reason::BadRequest, "{resource}");
        let everywhere = over_grpc(&api, "jane", resource, "", "a").await;
        assert_eq!(everywhere, Reason::Forbidden, "{resource}");
    }
}

/// Checks V10 (CVE-2022-3162): a kind, a namespace and a name that begin with another one.
#[tokio::test]
async fn a_kind_is_not_read_through_another_whose_name_it_begins_with() {
    let api = Api::with_rbac().await;
    for (plural, kind) in [("foo", "Foo"), ("foos", "Foos")] {
        api.define(definition(plural, kind, "Namespaced")).await;
    }
    let other = json!({ "metadata": { "name": "default-2" } });
    api.post("/api/v1/namespaces", other).await.ok();
    let path = |namespace: &str, plural: &str| format!("{GROUP}/namespaces/{namespace}/{plural}");
    for namespace in ["default", "default-2"] {
        api.post(&path(namespace, "foos"), object("Foos", "a"))
            .await
            .ok();
    }
    api.post(&path("default-2", "foo"), object("Foo", "b"))
        .await
        .ok();
    api.grant(
        "jane",
        json!([
            rule("*", "apart.example.com", "foo"),
            rule("get", "core", "pods")
        ]),
    )
    .await;
    let jane = api.user("jane");
    let foo = path("default", "foo");
    let listed = jane.get(&foo).await.ok();
    assert_eq!(listed["items"], json!([]));
    let everywhere = jane.get(&format!("{GROUP}/foo")).await.ok();
    let names = everywhere["items"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|one| one["metadata"]["name"].clone()).collect();
    assert_eq!(names, ["b"]);
    for watch in [
        "?watch=true&timeoutSeconds=1&resourceVersion=0",
        "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Da&resourceVersion=0",
    ] {
        let events = jane.get(&format!("{foo}{watch}")).await;
        assert_eq!(events.code, 200);
        assert!(events.body.is_empty(), "{events:?}");
    }
    jane.send("DELETE", &foo, "application/json", Value::Null)
        .await
        .ok();
    for namespace in ["default", "default-2"] {
        let kept = api
            .get(&format!("{}/a", path(namespace, "foos")))
            .await
            .ok();
        assert_eq!(kept["spec"]["value"], HIDDEN);
    }
    jane.get(&path("default", "foos"))
        .await
        .refused(403, "Forbidden");
}

/// Checks V10: a name is one segment of a key, whatever it is written as.
#[tokio::test]
async fn a_name_with_slashes_or_dots_reaches_no_other_object() {
    let api = Api::start().await;
    for (plural, kind) in [("foo", "Foo"), ("foos", "Foos")] {
        api.define(definition(plural, kind, "Namespaced")).await;
    }
    let foos = format!("{GROUP}/namespaces/default/foos");
    api.post(&foos, object("Foos", "a")).await.ok();
    let foo = format!("{GROUP}/namespaces/default/foo");
    for name in [
        "..%2F..%2Ffoos%2Fdefault%2Fa",
        "..%2Ffoos%2Fa",
        "%2E%2E%2Ffoos%2Fa",
        "..",
        ".",
        "%2e%2e",
        "..%2F..%2F..%2Fsecrets",
        "%2Fregistry%2Ffoos%2Fdefault%2Fa",
        "a%00",
        "",
    ] {
        for path in [
            format!("{foo}/{name}"),
            format!("{foo}/{name}/a"),
            format!("{GROUP}/namespaces/{name}/foo/a"),
        ] {
            for method in ["GET", "DELETE", "PUT", "PATCH"] {
                let request = http::Request::builder().method(method).uri(&path);
                let request = request.header("content-type", "application/merge-patch+json");
                let reply = api.send(request, "{}").await;
                let text = String::from_utf8_lossy(&reply.body);
                assert!(!text.contains(HIDDEN), "{method} {path}: {text}");
                let is_empty_list = name.is_empty() && reply.code.is_success();
                assert!(
                    is_empty_list || reply.code.is_client_error(),
                    "{method} {path}: {text}"
                );
            }
        }
    }
    for name in ["x/y", "../foos/a", "..", ".", "a\0", "a%2Fb"] {
        let refused = api.post(&foo, object("Foo", name)).await;
        refused.refused(422, "Invalid");
        let reason = over_grpc(&api, "jane", "foo.apart.example.com", "default", name).await;
        assert!(
            [Reason::NotFound, Reason::BadRequest, Reason::Invalid].contains(&reason),
            "{name} {reason:?}"
        );
    }
    for namespace in ["../foos", "..", "default/x"] {
        let reason = over_grpc(&api, "jane", "foo.apart.example.com", namespace, "a").await;
        assert!(
            [Reason::NotFound, Reason::BadRequest, Reason::Invalid].contains(&reason),
            "{namespace} {reason:?}"
        );
    }
    api.get(&format!("{foos}/a")).await.ok();
}
