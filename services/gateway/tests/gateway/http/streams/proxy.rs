//! `proxy`: HTTP to Pods and Services.

use std::future::ready;
use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use futures::FutureExt as _;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_SECURITY_POLICY, HOST, LOCATION, UPGRADE};
use http::{HeaderMap, Method, Request, StatusCode};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::TcpListener;

use super::agent::node;
use super::{POD, Plane};
use crate::http::api::Reply;

/// Checks DG14 and DG16, too.
#[tokio::test]
async fn a_request_is_passed_on_with_its_method_path_query_and_headers() {
    let plane = Plane::start().await;
    for method in [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ] {
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("{POD}/proxy/a%2Fb//c/?d=e&f"))
            .header("x-mine", "1")
            .header("sec-websocket-protocol", TOKEN)
            .header("impersonate-user", "mary");
        let reply = plane.api.send(request, "").await;
        assert_eq!(reply.code, 200, "{reply:?}");
        assert_eq!(reply.headers["x-own"], "yes");
        assert_eq!(reply.headers.get("x-hop"), None);
        let sent = String::from_utf8(reply.body.to_vec())
            .unwrap()
            .to_lowercase();
        let line = format!(
            "{} /a%2fb//c/?d=e&f http/1.1",
            method.as_str().to_lowercase()
        );
        assert!(sent.starts_with(&line), "{sent}");
        assert!(
            sent.contains("x-mine: 1") && !sent.contains("impersonate"),
            "{sent}"
        );
        let protocols = sent.lines().filter(|line| line.starts_with("sec-"));
        let protocols: Vec<_> = protocols.collect();
        assert_eq!(protocols, ["sec-websocket-protocol: a, b"], "DG16");
        let sandbox = reply.headers.get_all(CONTENT_SECURITY_POLICY).iter();
        let sandbox: Vec<_> = sandbox.collect();
        assert_eq!(sandbox, ["sandbox"], "DG14");
    }
}

/// Servers of HTTP/1.1 refuse a request without a host. HTTP/2 has that in the URI.
#[tokio::test]
async fn a_request_of_any_version_is_passed_on_with_a_host() {
    let plane = Plane::start().await;
    for (origin, header) in [
        ("https://gateway.example:6443", None),
        ("", Some("gateway.example:6443")),
        ("", None),
    ] {
        let mut request = Request::get(format!("{origin}{POD}/proxy/a"));
        if let Some(host) = header {
            request = request.header(HOST, host);
        }
        let reply = plane.api.send(request, "").await;
        assert_eq!(reply.code, 200, "{reply:?}");
        let sent = String::from_utf8(reply.body.to_vec()).unwrap();
        let hosts = sent.lines().filter_map(|line| line.strip_prefix("host: "));
        let hosts: Vec<_> = hosts.collect();
        match (origin, header) {
            ("", None) => assert!(hosts.len() == 1 && hosts[0].contains(':'), "{hosts:?}"),
            _ => assert_eq!(hosts, ["gateway.example:6443"]),
        }
    }
}

/// Subprotocols of a WebSocket, of which one is a bearer token.
const TOKEN: &str = "a, base64url.bearer.authorization.k8s.io.bm90LWEtdG9rZW4,b";

/// Checks DG14: a page cannot lift the restriction by a policy of its own, and a redirect has it, too.
#[tokio::test]
async fn a_proxied_page_is_in_a_sandbox_beside_its_own_policy() {
    let page = any(async || {
        let own = (CONTENT_SECURITY_POLICY, "sandbox allow-same-origin");
        ([own], "page")
    });
    let plane = Plane::with_pages(Router::new().route("/metrics", page)).await;
    let policies = |reply: &Reply| {
        let policies = reply.headers.get_all(CONTENT_SECURITY_POLICY).iter();
        let policies = policies.map(|policy| policy.to_str().unwrap().to_owned());
        policies.collect::<Vec<_>>()
    };
    let page = plane.api.get("/api/v1/nodes/n/proxy/metrics").await;
    assert_eq!(policies(&page), ["sandbox allow-same-origin", "sandbox"]);
    let moved = plane.api.get(&format!("{POD}/proxy/moved")).await;
    assert_eq!(
        (moved.code.as_u16(), policies(&moved)),
        (302, vec!["sandbox".to_owned()])
    );
}

/// One agent may serve many nodes, and must not be told another one by a client.
#[tokio::test]
async fn the_pages_of_an_agent_are_told_the_node() {
    let page = any(async |headers: HeaderMap| {
        let named = headers.get_all("setpoint-node").into_iter();
        let named = named.map(|name| name.to_str().unwrap().to_owned());
        named.collect::<Vec<_>>().join(",")
    });
    let pages = Router::new().route("/{*path}", page);
    let plane = Plane::with_pages(pages).await;
    for path in [
        "stats/summary?only_cpu_and_memory=true",
        "metrics/resource",
        "metrics",
    ] {
        let request = Request::get(format!("/api/v1/nodes/n/proxy/{path}"));
        let request = request.header("setpoint-node", "other");
        let reply = plane.api.send(request, "").await;
        assert_eq!(reply.code, 200, "{reply:?}");
        assert_eq!(reply.body, "n", "{path}");
    }
}

/// Checks DG5: neither another port of the host of an agent, nor another page of an agent is reached.
#[tokio::test]
async fn of_a_node_only_the_pages_of_its_agent_are_reached() {
    let pages = Router::new().route("/{*path}", any(async || "reached"));
    let plane = Plane::with_pages(pages).await;
    let etcd = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (etcd, own) = (
        etcd.local_addr().unwrap().port(),
        plane.agent.address.port(),
    );
    let send = async |method: Method, path: &str| {
        let path = format!("/api/v1/nodes/{path}");
        let request = Request::builder().method(method).uri(path);
        plane.api.send(request, "").await
    };
    let reached = send(Method::GET, &format!("n:{own}/proxy/metrics")).await;
    assert_eq!(reached.body, "reached");
    let refused = send(Method::POST, &format!("n:{etcd}/proxy/metrics")).await;
    assert_eq!(
        refused.refused(503, "ServiceUnavailable"),
        format!("error trying to reach service: port {etcd} is not that of the node's agent")
    );
    for path in [
        "raft",
        "debug/flags/log",
        "metrics/../debug/flags/log",
        "%64ebug/flags/log",
    ] {
        let refused = send(Method::PUT, &format!("n/proxy/{path}")).await;
        assert_eq!(refused.refused(404, "NotFound"), "404 page not found");
    }
}

/// Checks V4, DG5, DG6 and DG22: the gateway does not connect to link-local addresses, or to those at which machines
/// get their credentials, whatever a Node declares.
#[tokio::test]
async fn a_node_without_a_proven_agent_is_not_connected_to() {
    let plane = Plane::start().await;
    for (name, address) in [
        ("local", "169.254.169.254:80"),
        ("cloud", "100.100.100.200:80"),
    ] {
        let node = node(name, address.parse().unwrap());
        plane.api.post("/api/v1/nodes", node).await.ok();
        let page = format!("/api/v1/nodes/{name}/proxy/stats/summary");
        let refused = plane.api.get(&page).await;
        let refused = refused.refused(503, "ServiceUnavailable");
        let why = format!("the gateway does not connect to the agent of node {name:?}: ");
        assert!(refused.contains(&why), "{refused}");
        let pod = json!({
            "metadata": { "name": name },
            "spec": { "nodeName": name, "containers": [{ "name": "main", "image": "i" }] },
        });
        let pods = "/api/v1/namespaces/default/pods";
        plane.api.post(pods, pod).await.ok();
        let log = plane.api.get(&format!("{pods}/{name}/log")).await;
        assert!(log.refused(503, "ServiceUnavailable").contains(&why));
    }
}

/// Checks V3: a redirect is the client's to follow, and neither the agent nor the place it leads to gets credentials.
#[tokio::test]
async fn a_redirect_of_a_node_is_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = format!("http://{}/stolen", elsewhere.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let page = {
        let (seen, place) = (seen.clone(), place.clone());
        any(move |headers: HeaderMap| {
            seen.lock().push(headers);
            ready((StatusCode::FOUND, [(LOCATION, place)]))
        })
    };
    let plane = Plane::with_pages(Router::new().route("/metrics", page)).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = plane.api.post(account, json!({})).await.ok();
    let token = format!("Bearer {}", token["status"]["token"].as_str().unwrap());
    for upgrade in [false, true] {
        let request = Request::get("/api/v1/nodes/n/proxy/metrics").header(AUTHORIZATION, &token);
        let request = match upgrade {
            true => request
                .header(CONNECTION, "Upgrade")
                .header(UPGRADE, "websocket"),
            false => request,
        };
        let reply = plane.api.send(request, "").await;
        assert_eq!(reply.code, 302, "{reply:?}");
        assert_eq!(reply.headers[LOCATION], place);
    }
    let seen = seen.lock();
    assert_eq!(seen.len(), 2);
    for headers in &*seen {
        assert!(!headers.contains_key(AUTHORIZATION), "{headers:?}");
    }
    assert!(elsewhere.accept().now_or_never().is_none());
}

#[tokio::test]
async fn the_root_has_a_slash_and_redirects_stay_below_it() {
    let plane = Plane::start().await;
    let moved = plane.api.get(&format!("{POD}/proxy?a=b")).await;
    assert_eq!(moved.code, 301);
    assert_eq!(moved.headers[LOCATION], format!("{POD}/proxy/?a=b"));
    let moved = plane.api.get(&format!("{POD}/proxy/moved")).await;
    assert_eq!(moved.code, 302);
    assert_eq!(moved.headers[LOCATION], format!("{POD}/proxy/there?a=b"));
    plane.agent.idle().await;
}

#[tokio::test]
async fn the_port_is_named_or_that_of_the_first_container() {
    let plane = Plane::start().await;
    for name in ["web", "web:80", "http:web:80", "http:web:"] {
        let path = format!("/api/v1/namespaces/default/pods/{name}/proxy/");
        assert_eq!(plane.api.get(&path).await.code, 200, "{name}");
    }
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}/proxy/");
    let refused = plane.api.get(&path("web:81")).await;
    assert_eq!(
        refused.refused(503, "ServiceUnavailable"),
        "error trying to reach service: connection refused"
    );
    let invalid = plane.api.get(&path("ftp:web:80")).await;
    assert_eq!(
        invalid.refused(400, "BadRequest"),
        "invalid pod request \"ftp:web:80\""
    );
    plane.api.get(&path("none")).await.refused(404, "NotFound");
}

#[tokio::test]
async fn a_service_is_one_of_its_ready_pods() {
    let plane = Plane::start().await;
    let service = json!({
        "metadata": { "name": "s" },
        "spec": { "ports": [{ "name": "http", "port": 8080, "targetPort": 80 }], "selector": { "app": "web" } },
    });
    let services = "/api/v1/namespaces/default/services";
    plane.api.post(services, service).await.ok();
    let path = |name: &str| format!("{services}/{name}/proxy/");
    let none = plane.api.get(&path("s:http")).await;
    assert_eq!(
        none.refused(503, "ServiceUnavailable"),
        "no endpoints available for service \"s:http\""
    );
    let slice = json!({
        "metadata": { "name": "s-1", "labels": { "kubernetes.io/service-name": "s" } },
        "addressType": "IPv4",
        "ports": [{ "name": "http", "port": 80 }],
        "endpoints": [
            {
                "addresses": ["10.0.0.1"], "conditions": { "ready": true },
                "targetRef": { "kind": "Pod", "name": "web", "namespace": "default" },
            },
            {
                "addresses": ["10.0.0.2"], "conditions": { "ready": false },
                "targetRef": { "kind": "Pod", "name": "none", "namespace": "default" },
            },
        ],
    });
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    plane.api.post(slices, slice).await.ok();
    plane.api.get(&format!("{slices}/s-1")).await.ok();
    for name in ["s:http", "s:8080", "http:s:http"] {
        assert_eq!(plane.api.get(&path(name)).await.code, 200, "{name}");
    }
    let missing = plane.api.get(&path("s:81")).await;
    assert_eq!(
        missing.refused(503, "ServiceUnavailable"),
        "no service port 81 found for service \"s\""
    );
}
