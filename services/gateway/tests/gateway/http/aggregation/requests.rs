//! Requests that are forwarded.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, LOCATION, UPGRADE};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::server::Extension;
use super::{AUTHENTICATION, Discovery, FLUNDERS, Plane, SERVICE};
use crate::http::streams::failed_upgrade::refused_upgrade;

#[tokio::test]
async fn a_request_has_the_user_of_the_client_and_the_certificate_of_the_front_proxy() {
    let plane = Plane::start(Discovery::List).await;
    let request = Request::post(FLUNDERS)
        .header(CONTENT_TYPE, "application/json")
        .header("impersonate-user", "jane")
        .header("impersonate-group", "tenants")
        .header("impersonate-extra-scope", "dev")
        .header("x-remote-user", "root")
        .header("x-remote-group", "system:masters");
    let reply = plane.api.send(request, "{\"kind\":\"Flunder\"}").await;
    assert_eq!(reply.code, 201);
    assert_eq!(reply.body, "{\"kind\":\"Flunder\"}");
    let sent = plane.extension.headers(FLUNDERS);
    let all = |name: &str| sent.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(all("x-remote-user"), ["jane"]);
    assert_eq!(all("x-remote-group"), ["tenants", "system:authenticated"]);
    assert_eq!(all("x-remote-extra-scope"), ["dev"]);
    assert!(!sent.contains_key("impersonate-user") && !sent.contains_key(AUTHORIZATION));
    let method = Request::builder().method(Method::HEAD).uri(FLUNDERS);
    assert_eq!(plane.api.send(method, "").await.code, 200);
}

#[tokio::test]
async fn other_servers_learn_how_to_recognise_the_front_proxy() {
    let plane = Plane::unregistered(Discovery::List).await;
    let published = plane.api.get(AUTHENTICATION).await.ok()["data"].clone();
    let expected = [
        ("allowed-names", r#"["front-proxy-client"]"#),
        ("username-headers", r#"["X-Remote-User"]"#),
        ("uid-headers", r#"["X-Remote-Uid"]"#),
        ("group-headers", r#"["X-Remote-Group"]"#),
        ("extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ];
    for (key, value) in expected {
        assert_eq!(published[format!("requestheader-{key}")], value, "{key}");
    }
    plane.api.delete(AUTHENTICATION).await.ok();
    let again = plane
        .api
        .eventually(AUTHENTICATION, |reply| reply.code == 200)
        .await;
    assert_eq!(again.json()["data"], published);
    // A new CA is published, and used.
    let secret = "/api/v1/namespaces/setpoint-system/secrets/front-proxy";
    plane.api.delete(secret).await.ok();
    let ca = "requestheader-client-ca-file";
    let is_new = |data: &serde_json::Value| data[ca] != published[ca];
    let renewed = plane
        .api
        .eventually(AUTHENTICATION, |reply| is_new(&reply.json()["data"]))
        .await;
    let ca = renewed.json()["data"][ca].as_str().map(str::to_owned);
    let extension = Extension::start(Discovery::List, ca.as_deref()).await;
    let plane = Plane { extension, ..plane };
    plane.register(plane.spec(), true).await;
    plane.until("Passed").await;
}

#[tokio::test]
async fn a_watch_is_streamed_until_the_client_leaves() {
    let mut plane = Plane::start(Discovery::List).await;
    let request = Request::get(format!("{FLUNDERS}?watch=true"));
    let response = plane.api.open(request, "").await;
    assert_eq!(response.status(), 200);
    let events = plane.extension.watches.recv().await.unwrap();
    let mut body = response.into_body();
    for event in ["{\"type\":\"ADDED\"}\n", "{\"type\":\"DELETED\"}\n"] {
        events.send(Bytes::from_static(event.as_bytes())).unwrap();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), event);
    }
    drop(body);
    // The server learns of it when it writes.
    while events.send(Bytes::from_static(b"more\n")).is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_connection_is_upgraded() {
    let plane = Plane::start(Discovery::List).await;
    let gateway = plane.api.listen().await;
    let mut connection = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!(
        "GET {FLUNDERS}/a/proxy HTTP/1.1\r\nhost: localhost\r\n{CONNECTION}: Upgrade\r\n{UPGRADE}: echo\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(connection.read_u8().await.unwrap());
    }
    let response = String::from_utf8(response).unwrap();
    assert!(response.starts_with("HTTP/1.1 101"), "{response}");
    connection.write_all(b"hello").await.unwrap();
    let mut echo = [0; 5];
    connection.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"hello");
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused() {
    let plane = Plane::start(Discovery::List).await;
    let other = crate::http::https::Server::start(axum::Router::new()).await;
    let bundle = json!({ "spec": { "caBundle": other.ca_bundle } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", bundle)
        .await
        .ok();
    plane.api.get(SERVICE).await.ok();
    let refused = plane.api.get(FLUNDERS).await;
    assert_eq!(refused.code, 503);
    let message = "error trying to reach service: tls: failed to verify certificate: \
        x509: certificate signed by unknown authority\n";
    assert_eq!(refused.body, message);
    assert_eq!(refused.headers[CONTENT_TYPE], "text/plain; charset=utf-8");
    let skipped = json!({ "spec": { "caBundle": null, "insecureSkipTLSVerify": true } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", skipped)
        .await
        .ok();
    plane.api.get(SERVICE).await.ok();
    plane.api.get(FLUNDERS).await.ok();
}

#[tokio::test]
async fn a_bundle_without_a_certificate_is_an_error_of_the_gateway() {
    let plane = Plane::start(Discovery::List).await;
    let bundle = json!({ "spec": { "caBundle": "bm9uc2Vuc2U=" } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", bundle)
        .await
        .ok();
    plane.api.get(SERVICE).await.ok();
    let refused = plane.api.get(FLUNDERS).await;
    assert_eq!(refused.code, 500);
    let text = String::from_utf8_lossy(&refused.body);
    assert!(
        text.starts_with("unable to load root certificates: "),
        "{text}"
    );
}

/// Checks V7: a client would follow it with its credentials for the gateway.
#[tokio::test]
async fn a_redirect_of_a_server_is_not_passed_on() {
    let plane = Plane::start(Discovery::List).await;
    for code in [301, 302, 303, 307, 308] {
        for upgrade in [false, true] {
            let request = Request::get(format!("{FLUNDERS}/moved/{code}"));
            let request = match upgrade {
                true => request
                    .header(CONNECTION, "Upgrade")
                    .header(UPGRADE, "echo"),
                false => request,
            };
            let moved = plane.api.send(request, "").await;
            assert_eq!(moved.code, 502, "{code}");
            assert!(!moved.headers.contains_key(LOCATION), "{code}");
            assert_eq!(
                moved.body,
                "the backend attempted to redirect this request, which is not permitted\n"
            );
        }
    }
}

/// Checks V2: the server does not see as a request of the front proxy what a client sends after a failed upgrade.
#[tokio::test]
async fn no_byte_passes_to_a_server_after_a_failed_upgrade() {
    let plane = Plane::start(Discovery::List).await;
    let gateway = plane.api.listen().await;
    let smuggled = format!("{FLUNDERS}/smuggled");
    let next = format!(
        "GET {smuggled} HTTP/1.1\r\nhost: localhost\r\nx-remote-user: root\r\nconnection: close\r\n\r\n"
    );
    let path = format!("{FLUNDERS}/none");
    let answers = refused_upgrade(gateway.address, &path, &next).await;
    assert!(answers.starts_with("HTTP/1.1 404 "), "{answers}");
    // It is one of the gateway's, which authenticates it and says who the user is.
    let user = plane.extension.headers(&smuggled)["x-remote-user"].clone();
    assert_eq!(user, "system:admin");
}

#[tokio::test]
async fn nothing_waits_for_a_server_that_does_not_answer() {
    let plane = Plane::start(Discovery::List).await;
    let late = plane
        .api
        .get(&format!("{FLUNDERS}/never?timeout=100ms"))
        .await;
    assert_eq!(
        late.refused(504, "Timeout"),
        "request did not complete within the allotted timeout"
    );
    assert_eq!(plane.api.get(&format!("{FLUNDERS}/none")).await.code, 404);
    // Nobody listens at this port, whether or not the gateway has noticed.
    let port = json!({ "spec": { "service": { "port": 1 } } });
    plane
        .api
        .patch(SERVICE, "merge-patch+json", port)
        .await
        .ok();
    plane.api.get(SERVICE).await.ok();
    assert_eq!(plane.api.get(FLUNDERS).await.code, 503);
}
