//! `proxy`: HTTP to Pods and Services.

use http::header::LOCATION;
use http::{Method, Request};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{POD, Plane};
use crate::api::Api;

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
    }
}

/// Answers each request with its headers that name a node.
async fn name_headers(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 8192];
        let read = stream.read(&mut buffer).await.unwrap();
        let request = String::from_utf8_lossy(&buffer[..read]).to_lowercase();
        let named = request
            .lines()
            .filter_map(|line| line.strip_prefix("setpoint-node: "));
        let body = named.collect::<Vec<_>>().join(",");
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
    }
}

/// One agent may serve many nodes, and must not be told another one by a client.
#[tokio::test]
async fn the_pages_of_an_agent_are_told_the_node() {
    let api = Api::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = AbortOnDropHandle::new(tokio::spawn(name_headers(listener)));
    let node = json!({
        "metadata": { "name": "n" },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        },
    });
    api.post("/api/v1/nodes", node).await.ok();
    for (path, expected) in [
        ("stats/summary?only_cpu_and_memory=true", "n"),
        ("metrics/resource", "n"),
        ("metrics", "other"),
    ] {
        let request = Request::get(format!("/api/v1/nodes/n/proxy/{path}"));
        let reply = api.send(request.header("setpoint-node", "other"), "").await;
        assert_eq!(reply.code, 200, "{reply:?}");
        assert_eq!(reply.body, expected, "{path}");
    }
    drop(serving);
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
