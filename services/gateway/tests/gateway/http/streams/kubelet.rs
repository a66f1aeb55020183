//! Nodes that have a kubelet in place of an agent.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::header::{CONNECTION, UPGRADE};
use http::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::TcpStream;

use super::Plane;
use super::agent::node;

const POD: &str = "/api/v1/namespaces/default/pods/stock";

/// Returns a gateway with the Pod `stock` on a node whose kubelet has these pages.
async fn plane(pages: Router) -> Plane {
    let plane = Plane::with_pages(pages).await;
    let mut node = node("stock", plane.agent.address);
    node["status"]["nodeInfo"] = json!({ "kubeletVersion": "v1.36.0" });
    plane.api.post("/api/v1/nodes", node).await.ok();
    let pod = json!({
        "metadata": { "name": "stock" },
        "spec": { "nodeName": "stock", "containers": [{ "name": "main", "image": "i" }] },
    });
    let pods = "/api/v1/namespaces/default/pods";
    plane.api.post(pods, pod).await.ok();
    plane
}

#[tokio::test]
async fn a_kubelet_is_asked_for_logs_by_its_own_path() {
    let page = any(async |uri: Uri| uri.to_string());
    let plane = plane(Router::new().route("/containerLogs/{*path}", page)).await;
    let log = plane.api.get(&format!("{POD}/log?tailLines=3&x=y")).await;
    assert_eq!(log.code, 200, "{log:?}");
    assert_eq!(log.body, "/containerLogs/default/stock/main?tailLines=3");
    let invalid = plane.api.get(&format!("{POD}/log?tailLines=-1")).await;
    assert_eq!(invalid.code, 422, "{invalid:?}");
}

/// The text is the kubelet's; that it does not know the gateway is no fault of the client.
#[tokio::test]
async fn an_error_of_a_kubelet_is_told() {
    for (code, expected, text) in [
        (StatusCode::BAD_REQUEST, 400, "container is waiting"),
        (StatusCode::NOT_FOUND, 404, "no such container"),
        (
            StatusCode::FORBIDDEN,
            500,
            "the node's kubelet refuses the gateway: no",
        ),
    ] {
        let answer = text.rsplit_once(": ").map_or(text, |(_, answer)| answer);
        let page = any(async move || (code, format!("{answer}\n")));
        let plane = plane(Router::new().route("/containerLogs/{*path}", page)).await;
        let log = plane.api.get(&format!("{POD}/log")).await;
        assert_eq!(log.code, expected, "{log:?}");
        assert_eq!(log.json()["message"], text);
    }
}

#[tokio::test]
async fn what_a_kubelet_upgrades_to_is_passed_on() {
    let page = any(async |mut request: Request<Body>| {
        let asked = request.uri().to_string();
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let (mut reader, mut writer) = split(TokioIo::new(upgrade.await.unwrap()));
            writer.write_all(asked.as_bytes()).await.unwrap();
            copy(&mut reader, &mut writer).await.ok();
        });
        let headers = [(CONNECTION, "Upgrade"), (UPGRADE, "SPDY/3.1")];
        (StatusCode::SWITCHING_PROTOCOLS, headers)
    });
    let pages = Router::new()
        .route("/exec/{*path}", page.clone())
        .route("/attach/{*path}", page.clone())
        .route("/portForward/{*path}", page);
    let plane = plane(pages).await;
    for (asked, passed_on) in [
        (
            "exec?command=sh&command=-c&stdin=true&stdout=true",
            "/exec/default/stock/main?input=1&output=1&command=sh&command=-c",
        ),
        (
            "attach?stdout=1&stderr=1",
            "/attach/default/stock/main?output=1&error=1",
        ),
        ("portforward", "/portForward/default/stock?"),
    ] {
        let mut stream = upgraded(plane.server.address, asked).await;
        assert_eq!(read(&mut stream, passed_on.len()).await, passed_on);
        stream.write_all(b"ping").await.unwrap();
        assert_eq!(read(&mut stream, 4).await, "ping");
    }
}

/// Checks that no byte of the client comes to a kubelet that has not upgraded the connection.
#[tokio::test]
async fn an_answer_of_a_kubelet_that_is_no_upgrade_ends_the_request() {
    for (code, expected, text) in [
        (StatusCode::OK, "HTTP/1.1 500 ", "answers 200 OK"),
        (
            StatusCode::NOT_FOUND,
            "HTTP/1.1 404 ",
            "pod does not exist\n",
        ),
    ] {
        let page = any(async move || (code, "pod does not exist\n"));
        let plane = plane(Router::new().route("/exec/{*path}", page)).await;
        let mut stream = asked(plane.server.address, "exec?command=sh&stdout=true").await;
        let next = "GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        stream.write_all(next.as_bytes()).await.unwrap();
        let mut answers = String::new();
        stream.read_to_string(&mut answers).await.unwrap();
        assert!(answers.starts_with(expected), "{answers}");
        assert!(answers.contains(text), "{answers}");
        // The gateway answers the second request.
        assert!(answers.contains("gitVersion"), "{answers}");
    }
}

/// Opens a connection that is upgraded, and returns it after the head of the response.
async fn upgraded(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = asked(address, path).await;
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push_str(&read(&mut stream, 1).await);
    }
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    stream
}

/// Opens a connection, and asks for an upgrade.
async fn asked(address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST {POD}/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: v4.channel.k8s.io\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn read(stream: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}
