//! Connections whose upgrade fails.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{POD, Plane};

/// The bytes after the failed upgrade on the connection: for the gateway, they are a request of its own.
const NEXT: &str = "GET /stats/summary HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Asks for an upgrade at a path, and sends [`NEXT`] behind it. Returns the responses, until the gateway closes the
/// connection.
pub async fn refused_upgrade(address: SocketAddr, path: &str, next: &str) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        sec-websocket-protocol: v5.channel.k8s.io\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(next.as_bytes()).await.unwrap();
    let mut answers = String::new();
    connection.read_to_string(&mut answers).await.unwrap();
    answers
}

/// Asserts that the second request was answered by the gateway, which has no such path.
fn assert_second_is_the_gateways(answers: &str) {
    let (_, second) = answers.split_once("HTTP/1.1 ").unwrap();
    let (_, second) = second.split_once("HTTP/1.1 ").unwrap_or_default();
    assert!(second.starts_with("404 "), "{answers}");
}

/// Checks V2.
#[tokio::test]
async fn no_byte_passes_to_a_container_after_a_failed_upgrade() {
    let plane = Plane::start().await;
    let path = format!("{POD}/exec?command=missing&stdin=1&stdout=1");
    let answers = refused_upgrade(plane.server.address, &path, NEXT).await;
    assert!(answers.starts_with("HTTP/1.1 500 "), "{answers}");
    assert_second_is_the_gateways(&answers);
    plane.agent.idle().await;
    assert_eq!(plane.agent.opened().len(), 1);
}

/// Checks V2: the server of the Pod, which answers with all that it gets, answers with the first request alone.
#[tokio::test]
async fn no_byte_passes_to_a_pod_after_a_failed_upgrade() {
    let plane = Plane::start().await;
    let path = format!("{POD}/proxy/socket");
    let answers = refused_upgrade(plane.server.address, &path, NEXT).await;
    assert!(answers.starts_with("HTTP/1.1 200 "), "{answers}");
    assert!(
        answers.to_lowercase().contains("get /socket http/1.1"),
        "{answers}"
    );
    assert!(!answers.contains("GET /stats"), "{answers}");
    assert_second_is_the_gateways(&answers);
}

/// Checks V2.
#[tokio::test]
async fn no_byte_passes_to_a_node_after_a_failed_upgrade() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = {
        let seen = seen.clone();
        any(move |request: Request| {
            seen.lock().push(request.uri().path().to_owned());
            ready("no upgrade")
        })
    };
    let pages = Router::new()
        .route("/metrics", record.clone())
        .route("/stats/summary", record);
    let plane = Plane::with_pages(pages).await;
    let path = "/api/v1/nodes/n/proxy/metrics";
    let answers = refused_upgrade(plane.server.address, path, NEXT).await;
    assert!(answers.starts_with("HTTP/1.1 200 "), "{answers}");
    assert_second_is_the_gateways(&answers);
    assert_eq!(*seen.lock(), ["/metrics"]);
}
