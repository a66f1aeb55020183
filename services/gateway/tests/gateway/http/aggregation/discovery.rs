//! Discovery and OpenAPI of what another server serves.

use serde_json::Value;

use super::{Discovery, GROUP, Plane, SERVICE, VERSION};
use crate::http::api::PROTOBUF;

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn named<'a>(list: &'a Value, path: &str, name: &str) -> &'a Value {
    let mut items = list.as_array().unwrap().iter();
    let found = items.find(|item| item.pointer(path).is_some_and(|of| of == name));
    found.unwrap_or_else(|| panic!("no {name} in {list}"))
}

#[tokio::test]
async fn both_forms_of_discovery_list_what_the_server_serves() {
    for discovery in [Discovery::Aggregated, Discovery::List] {
        let plane = Plane::start(discovery).await;
        let api = &plane.api;
        let groups = api.get("/apis").await.ok();
        let group = named(&groups["groups"], "/name", GROUP);
        assert_eq!(
            group["preferredVersion"]["groupVersion"],
            "wardle.example.com/v1alpha1"
        );
        let own = api.get("/apis/wardle.example.com").await.ok();
        assert_eq!(
            (&own["kind"], &own["name"]),
            (&"APIGroup".into(), &GROUP.into())
        );
        let list = api.get(VERSION).await.ok();
        assert_eq!(list["resources"][0]["name"], "flunders");
        assert_eq!(api.get_as("/apis", PROTOBUF).await.code, 200);

        let groups = api.get_as("/apis", AGGREGATED).await.ok();
        let group = named(&groups["items"], "/metadata/name", GROUP);
        let version = &group["versions"][0];
        assert_eq!(version["freshness"], "Current");
        let flunders = &version["resources"][0];
        assert_eq!(flunders["resource"], "flunders", "{discovery:?}");
        assert_eq!(flunders["responseKind"]["kind"], "Flunder");
        assert_eq!(flunders["responseKind"]["group"], GROUP);
        assert_eq!(flunders["shortNames"][0], "fl");
        let paths = api.get("/").await.ok()["paths"].clone();
        for path in ["/apis/wardle.example.com", VERSION] {
            assert!(paths.as_array().unwrap().contains(&path.into()), "{paths}");
        }
    }
}

#[tokio::test]
async fn a_group_has_the_place_of_its_priority() {
    let plane = Plane::start(Discovery::List).await;
    let names = async || {
        let groups = plane.api.get("/apis").await.ok();
        let names = groups["groups"].as_array().unwrap().iter();
        let names = names.map(|group| group["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    // The priority is below those of Kubernetes' groups, and above those of others.
    assert!(
        names()
            .await
            .ends_with(&[GROUP.into(), "metrics.k8s.io".into()])
    );
    let first = serde_json::json!({ "spec": { "groupPriorityMinimum": 20_000 } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", first)
        .await
        .ok();
    plane.api.get(SERVICE).await.ok();
    assert_eq!(names().await[0], GROUP);
}

#[tokio::test]
async fn the_resources_of_a_server_that_fails_are_stale() {
    let plane = Plane::start(Discovery::Aggregated).await;
    plane.extension.discovers(Discovery::Broken);
    // A check follows the change.
    let port = "/api/v1/namespaces/default/services/extension";
    let label = serde_json::json!({ "metadata": { "labels": { "a": "b" } } });
    plane.api.patch(port, "merge-patch+json", label).await.ok();
    plane.until("FailedDiscoveryCheck").await;
    let groups = plane.api.get_as("/apis", AGGREGATED).await.ok();
    let version = &named(&groups["items"], "/metadata/name", GROUP)["versions"][0];
    assert_eq!(version["freshness"], "Stale");
    assert_eq!(version["resources"][0]["resource"], "flunders");
    plane.api.delete(SERVICE).await.ok();
    let is_gone = |reply: &crate::http::api::Reply| reply.code == 404;
    plane
        .api
        .eventually("/apis/wardle.example.com", is_gone)
        .await;
}

#[tokio::test]
async fn the_index_of_openapi_leads_to_the_document_of_the_server() {
    let plane = Plane::start(Discovery::List).await;
    let index = plane.api.get("/openapi/v3").await.ok();
    let url = &index["paths"]["apis/wardle.example.com/v1alpha1"]["serverRelativeURL"];
    let url = url.as_str().unwrap();
    assert_eq!(url, "/openapi/v3/apis/wardle.example.com/v1alpha1?hash=A");
    assert!(index["paths"]["version"].is_null());
    assert!(index["paths"]["apis/apps/v1"].is_object());
    assert_eq!(plane.api.get(url).await.ok()["openapi"], "3.0.0");
}
