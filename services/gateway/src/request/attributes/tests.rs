//! The attributes of requests beside those of upstream's `RequestInfoFactory`.

use setpoint_codec::KindTable;
use setpoint_model::Verb;

use super::*;
use crate::request::RequestInfo;

fn attributes(method: &str, uri: &str) -> Attributes {
    let method: Method = method.parse().unwrap();
    let info = RequestInfo::of(&KindTable::default(), &method, &uri.parse().unwrap());
    Attributes::clone(&info.attributes)
}

/// Returns verb, group, version, namespace, resource, subresource and name in one text.
fn resource(method: &str, uri: &str) -> String {
    let attributes = attributes(method, uri);
    let of = attributes.resource.unwrap_or_else(|| panic!("{uri}"));
    format!(
        "{} {}/{} {}:{}/{}/{}",
        attributes.verb, of.group, of.version, of.namespace, of.resource, of.name, of.subresource
    )
}

#[test]
fn requests_for_resources_have_upstreams_attributes() {
    for (method, uri, expected) in [
        // Collections and objects.
        ("GET", "/api/v1/namespaces", "list /v1 :namespaces//"),
        (
            "GET",
            "/api/v1/namespaces/other",
            "get /v1 other:namespaces/other/",
        ),
        (
            "GET",
            "/api/v1/namespaces/other/pods",
            "list /v1 other:pods//",
        ),
        (
            "GET",
            "/api/v1/namespaces/other/pods/foo",
            "get /v1 other:pods/foo/",
        ),
        (
            "HEAD",
            "/api/v1/namespaces/other/pods/foo",
            "get /v1 other:pods/foo/",
        ),
        ("HEAD", "/api/v1/pods", "list /v1 :pods//"),
        ("GET", "/api/v1/pods", "list /v1 :pods//"),
        (
            "POST",
            "/api/v1/namespaces/other/pods",
            "create /v1 other:pods//",
        ),
        (
            "PUT",
            "/api/v1/namespaces/other/pods/foo",
            "update /v1 other:pods/foo/",
        ),
        (
            "PATCH",
            "/api/v1/namespaces/other/pods/foo",
            "patch /v1 other:pods/foo/",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/other/pods/foo",
            "delete /v1 other:pods/foo/",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/other/pods",
            "deletecollection /v1 other:pods//",
        ),
        ("DELETE", "/api/v1/nodes", "deletecollection /v1 :nodes//"),
        (
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/b",
            "get apps/v1 a:deployments/b/",
        ),
        // An apply that creates its object is a patch; an update that does is an update.
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b?fieldManager=me&force=true",
            "patch apps/v1 a:deployments/b/",
        ),
        (
            "PUT",
            "/apis/coordination.k8s.io/v1/namespaces/a/leases/b",
            "update coordination.k8s.io/v1 a:leases/b/",
        ),
        // Watches, by the query and by deprecated paths.
        ("GET", "/api/v1/pods?watch=true", "watch /v1 :pods//"),
        ("GET", "/api/v1/pods?watch", "watch /v1 :pods//"),
        ("GET", "/api/v1/pods?watch=false", "list /v1 :pods//"),
        ("GET", "/api/v1/pods?watch=0", "list /v1 :pods//"),
        (
            "GET",
            "/api/v1/namespaces/a/pods/b?watch=true",
            "get /v1 a:pods/b/",
        ),
        ("GET", "/api/v1/watch/pods", "watch /v1 :pods//"),
        (
            "GET",
            "/api/v1/watch/namespaces/other/pods/foo",
            "watch /v1 other:pods/foo/",
        ),
        // A selector of one name asks for that object.
        (
            "GET",
            "/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Dweb",
            "watch /v1 a:pods/web/",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name==web,spec.nodeName=n",
            "list /v1 a:pods/web/",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name!%3Dweb",
            "list /v1 a:pods//",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Da%2Fb",
            "list /v1 a:pods//",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dweb",
            "deletecollection /v1 a:pods//",
        ),
        // Subresources.
        (
            "PUT",
            "/api/v1/namespaces/a/finalize",
            "update /v1 a:namespaces/a/finalize",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/status",
            "get /v1 a:namespaces/a/status",
        ),
        (
            "PATCH",
            "/api/v1/nodes/n/status",
            "patch /v1 :nodes/n/status",
        ),
        (
            "GET",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            "get apps/v1 a:deployments/b/scale",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/pods/b/binding",
            "create /v1 a:pods/b/binding",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/pods/b/eviction",
            "create /v1 a:pods/b/eviction",
        ),
        (
            "POST",
            "/api/v1/namespaces/a/serviceaccounts/b/token",
            "create /v1 a:serviceaccounts/b/token",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/pods/b/log?follow=true",
            "get /v1 a:pods/b/log",
        ),
        // Connections.
        (
            "POST",
            "/api/v1/namespaces/a/pods/b/exec?command=ls",
            "create /v1 a:pods/b/exec",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/pods/b/portforward",
            "get /v1 a:pods/b/portforward",
        ),
        (
            "GET",
            "/api/v1/namespaces/a/services/b/proxy/c/d",
            "get /v1 a:services/b/proxy",
        ),
        (
            "DELETE",
            "/api/v1/nodes/n/proxy/c",
            "delete /v1 :nodes/n/proxy",
        ),
        (
            "GET",
            "/api/v1/proxy/namespaces/a/pods/b/c",
            "proxy /v1 a:pods/b/",
        ),
        // Kinds of other servers, and kinds that do not exist.
        (
            "GET",
            "/apis/example.com/v1/flunders/a",
            "get example.com/v1 :flunders/a/",
        ),
        (
            "POST",
            "/apis/no.example/v7/namespaces/a/cats",
            "create no.example/v7 a:cats//",
        ),
        ("OPTIONS", "/api/v1/pods", " /v1 :pods//"),
        // Segments are decoded one by one, as the handler reads them.
        ("GET", "/api/v1/nodes/a%3Ab/", "get /v1 :nodes/a:b/"),
    ] {
        assert_eq!(resource(method, uri), expected, "{method} {uri}");
    }
}

#[test]
fn other_paths_have_the_method_as_their_verb() {
    for (method, uri, verb, path) in [
        ("GET", "/healthz", "get", "/healthz"),
        ("GET", "/", "get", "/"),
        ("GET", "/api", "get", "/api"),
        ("GET", "/api/v1", "get", "/api/v1"),
        ("GET", "/apis/apps/v1/", "get", "/apis/apps/v1/"),
        ("GET", "/api/v1/watch", "get", "/api/v1/watch"),
        ("GET", "/openapi/v3?hash=1", "get", "/openapi/v3"),
        ("POST", "/version", "post", "/version"),
        ("HEAD", "/livez/etcd", "head", "/livez/etcd"),
    ] {
        let found = attributes(method, uri);
        assert_eq!((&*found.verb, found.resource), (verb, None), "{uri}");
        assert_eq!(found.path, path);
    }
}

#[test]
fn a_call_has_the_attributes_of_the_request_that_does_the_same() {
    for (method, uri, verb, kind, target) in [
        (
            "GET",
            "/api/v1/namespaces/a",
            Verb::Get,
            "namespaces",
            ["", "a", ""],
        ),
        (
            "POST",
            "/api/v1/namespaces/a/pods",
            Verb::Create,
            "pods",
            ["a", "", ""],
        ),
        (
            "PUT",
            "/api/v1/namespaces/a/pods/b/status",
            Verb::Update,
            "pods",
            ["a", "b", "status"],
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/a/deployments/b/scale",
            Verb::Patch,
            "deployments.apps",
            ["a", "b", "scale"],
        ),
        (
            "DELETE",
            "/api/v1/nodes/n",
            Verb::Delete,
            "nodes",
            ["", "n", ""],
        ),
    ] {
        let kind = setpoint_codec::kinds().by_resource(kind).unwrap();
        let [namespace, name, subresource] = target;
        let target = Target::new(kind, namespace, name, subresource).unwrap();
        let over_http = attributes(method, uri);
        let called = Attributes::of_target(verb, &target);
        assert_eq!(
            (called.verb, called.resource),
            (over_http.verb, over_http.resource),
            "{uri}"
        );
    }
}

#[test]
fn watches_logs_and_connections_are_long_running() {
    for (uri, expected) in [
        ("/apis/example.com/v1/flunders", false),
        ("/apis/example.com/v1/flunders?watch=true", true),
        ("/apis/example.com/v1/flunders?watch=false", false),
        ("/apis/example.com/v1/watch/flunders", true),
        ("/apis/example.com/v1/namespaces/a/flunders/b", false),
        ("/apis/example.com/v1/namespaces/a/flunders/b/status", false),
        ("/apis/example.com/v1/namespaces/a/flunders/b/log", true),
        (
            "/apis/example.com/v1/namespaces/a/flunders/b/proxy/c/d",
            true,
        ),
        ("/apis/example.com/v1/flunders/b/exec", true),
        ("/apis/example.com/v1/namespaces/watch", false),
        ("/apis/example.com/v1", false),
        ("/healthz?watch=true", false),
    ] {
        assert_eq!(attributes("GET", uri).is_long_running(), expected, "{uri}");
    }
}
