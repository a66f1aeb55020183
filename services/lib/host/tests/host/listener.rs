//! Tests of the listener over real sockets.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::get;
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use setpoint_host::serve;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const SOON: Duration = Duration::from_secs(10);

async fn serve_router(router: Router) -> (SocketAddr, CancellationToken, JoinHandle<()>) {
    let listener: TcpListener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let server = tokio::spawn(serve::serve(
        listener,
        router,
        serve::Limits::default(),
        stop.clone(),
    ));
    (address, stop, server)
}

fn client(http2: bool) -> Client<HttpConnector, Empty<Bytes>> {
    Client::builder(TokioExecutor::new())
        .http2_only(http2)
        .build_http()
}

async fn fetch(address: SocketAddr, http2: bool) -> (StatusCode, Version, Bytes) {
    let request = Request::get(format!("http://{address}/"))
        .body(Empty::new())
        .unwrap();
    let response = client(http2).request(request).await.unwrap();
    let (status, version) = (response.status(), response.version());
    (
        status,
        version,
        response.into_body().collect().await.unwrap().to_bytes(),
    )
}

#[tokio::test]
async fn http_1_and_http_2_share_the_port() {
    let (address, stop, server) =
        serve_router(Router::new().route("/", get(|| async { "yes" }))).await;
    for (http2, version) in [(false, Version::HTTP_11), (true, Version::HTTP_2)] {
        assert_eq!(
            fetch(address, http2).await,
            (StatusCode::OK, version, Bytes::from("yes"))
        );
    }
    stop.cancel();
    timeout(SOON, server).await.unwrap().unwrap();
}

#[tokio::test]
async fn an_open_request_is_answered_after_shutdown() {
    for http2 in [false, true] {
        let (arrived, arrival) = oneshot::channel();
        let (release, released) = oneshot::channel::<()>();
        let ends = std::sync::Arc::new(parking_lot::Mutex::new(Some((arrived, released))));
        let slow = get(move || async move {
            let (arrived, released) = ends.lock().take().unwrap();
            arrived.send(()).unwrap();
            released.await.unwrap();
            "done"
        });
        let (address, stop, server) = serve_router(Router::new().route("/", slow)).await;
        let answer = tokio::spawn(fetch(address, http2));
        arrival.await.unwrap();
        stop.cancel();
        release.send(()).unwrap();
        assert_eq!(timeout(SOON, answer).await.unwrap().unwrap().2, "done");
        timeout(SOON, server).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn idle_connections_do_not_delay_the_shutdown() {
    let (address, stop, server) = serve_router(Router::new()).await;
    let clients = [client(false), client(true)];
    for client in &clients {
        let request = Request::get(format!("http://{address}/"))
            .body(Empty::new())
            .unwrap();
        client.request(request).await.unwrap();
    }
    let _silent = tokio::net::TcpStream::connect(address).await.unwrap();
    stop.cancel();
    timeout(SOON, server).await.unwrap().unwrap();
}

#[tokio::test]
async fn every_request_has_the_address_of_its_client() {
    use axum::Extension;
    let show = get(
        |Extension(serve::Peer(peer)): Extension<serve::Peer>| async move { peer.ip().to_string() },
    );
    let (address, _stop, _server) = serve_router(Router::new().route("/", show)).await;
    assert_eq!(fetch(address, true).await.2, "127.0.0.1");
}
