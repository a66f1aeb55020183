use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::json;
use setpoint_host::serve::{Limits, bind, serve_with};
use setpoint_tls::authority::{Authority, Leaf, Usage};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::*;

/// A server that answers with a ConfigMap, or with an error.
struct Server {
    gateway: Gateway,
    _stop: DropGuard,
}

impl Server {
    /// Starts one with a certificate by this CA.
    async fn start(authority: &Authority, status: u16, map: &serde_json::Value) -> Self {
        let leaf = Leaf {
            name: "system:setpoint:gateway".to_owned(),
            groups: Vec::new(),
            hosts: vec!["127.0.0.1".to_owned()],
            usage: Usage::ServerAndClient,
            lifetime: Duration::from_secs(3600),
        };
        let own = authority.issue(&leaf).unwrap().credentials().unwrap();
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let (status, body) = (StatusCode::from_u16(status).unwrap(), map.to_string());
        let router = Router::new().route(&path(), get(move || async move { (status, body) }));
        let serving = serve_with(Some(own), listener, router, Limits::default(), stop.clone());
        tokio::spawn(serving);
        Self {
            gateway: Gateway::parse(&address.to_string()).unwrap(),
            _stop: stop.drop_guard(),
        }
    }
}

fn token() -> Token {
    "abcdef.0123456789abcdef".parse().unwrap()
}

/// Returns cluster-info with these CAs, signed by a token.
fn info(authorities: &str, token: &Token) -> serde_json::Value {
    let authorities = STANDARD.encode(authorities);
    let text = format!(
        "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: {authorities}\n    server: https://a\n"
    );
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{}"}}"#, token.id()));
    let content = format!("{header}.{}", URL_SAFE_NO_PAD.encode(&text));
    let key = hmac::Key::new(hmac::HMAC_SHA256, token.secret().as_bytes());
    let signed = URL_SAFE_NO_PAD.encode(hmac::sign(&key, content.as_bytes()));
    let jws = format!("jws-kubeconfig-{}", token.id());
    json!({ "data": { "kubeconfig": text, jws: format!("{header}..{signed}") } })
}

fn pins(authority: &Authority) -> Vec<Pin> {
    Pinned::parse(authority.certificate()).unwrap().pins()
}

/// Returns why nothing is trusted, and whether that stays so.
async fn refused(server: &Server, token: &Token, pins: &[Pin]) -> (String, bool) {
    match attempt(&server.gateway, token, pins).await {
        Ok(trusted) => panic!("{trusted:?}"),
        Err(Obstacle::Passing { reason, .. }) => (reason, false),
        Err(Obstacle::Final(error)) => (format!("{error:#}"), true),
    }
}

#[tokio::test]
async fn the_ca_that_the_token_has_signed_and_the_hash_names_is_trusted() {
    let authority = Authority::create("own").unwrap();
    let map = info(authority.certificate(), &token());
    let server = Server::start(&authority, 200, &map).await;
    let nobody = crate::launcher::port::free(1).unwrap()[0];
    let dead = Gateway::parse(&format!("127.0.0.1:{nobody}")).unwrap();
    let gateways = [dead, server.gateway.clone()];
    let found = discover(&gateways, &token(), &pins(&authority)).await;
    let (answers, trusted) = found.unwrap();
    assert_eq!(answers, server.gateway, "the other one is left out");
    assert_eq!(trusted.pem(), authority.certificate());
}

#[tokio::test]
async fn another_hash_is_refused_and_named() {
    let authority = Authority::create("own").unwrap();
    let other = Authority::create("other").unwrap();
    let map = info(authority.certificate(), &token());
    let server = Server::start(&authority, 200, &map).await;
    let (why, stays) = refused(&server, &token(), &pins(&other)).await;
    let hash = pins(&authority)[0].to_string();
    assert!(
        why.starts_with(&format!(
            "the CA of this cluster has the hash {hash}, and not"
        )),
        "{why}"
    );
    assert!(stays);
}

#[tokio::test]
async fn another_secret_of_the_token_is_refused() {
    let authority = Authority::create("own").unwrap();
    let map = info(authority.certificate(), &token());
    let server = Server::start(&authority, 200, &map).await;
    let other = "abcdef.0123456789abcdee".parse().unwrap();
    let (why, stays) = refused(&server, &other, &pins(&authority)).await;
    assert!(
        why.contains("does not know the secret of the token abcdef"),
        "{why}"
    );
    assert!(!why.contains("abcdee"), "{why}");
    assert!(stays);
}

/// It may be a new one, which is signed by soon.
#[tokio::test]
async fn a_token_without_a_signature_is_waited_for() {
    let authority = Authority::create("own").unwrap();
    let map = info(authority.certificate(), &token());
    let server = Server::start(&authority, 200, &map).await;
    let other = "abcdee.0123456789abcdef".parse().unwrap();
    let (why, stays) = refused(&server, &other, &pins(&authority)).await;
    assert!(
        why.starts_with("the cluster has no token abcdee: it has expired, was used or deleted"),
        "{why}"
    );
    assert!(!stays);
}

/// A server that knows the token can sign anything: it may add its own CA to that of the cluster.
#[tokio::test]
async fn a_ca_beside_the_one_of_the_hash_is_not_trusted() {
    let authority = Authority::create("own").unwrap();
    let forger = Authority::create("forger").unwrap();
    let both = format!("{}{}", forger.certificate(), authority.certificate());
    let server = Server::start(&forger, 200, &info(&both, &token())).await;
    let (why, stays) = refused(&server, &token(), &pins(&authority)).await;
    assert!(
        why.contains("has no certificate by the CA of --ca-cert-hash"),
        "{why}"
    );
    assert!(stays);
    let honest = Server::start(&authority, 200, &info(&both, &token())).await;
    let gateways = std::slice::from_ref(&honest.gateway);
    let (_, trusted) = discover(gateways, &token(), &pins(&authority))
        .await
        .unwrap();
    assert_eq!(trusted.pem(), authority.certificate());
}

#[tokio::test]
async fn a_cluster_that_publishes_nothing_is_told_from_one_that_is_not_ready() {
    let authority = Authority::create("own").unwrap();
    for (status, stays_so) in [
        (403, true),
        (404, true),
        (401, true),
        (503, false),
        (429, false),
    ] {
        let server = Server::start(&authority, status, &json!({})).await;
        let (why, stays) = refused(&server, &token(), &pins(&authority)).await;
        assert_eq!(stays, stays_so, "{why}");
        assert!(why.contains(&status.to_string()), "{why}");
    }
    let server = Server::start(&authority, 200, &json!({ "data": {} })).await;
    let (why, _) = refused(&server, &token(), &pins(&authority)).await;
    assert_eq!(why, "cluster-info has no kubeconfig");
}

#[tokio::test]
async fn where_nobody_listens_it_is_tried_again() {
    let authority = Authority::create("own").unwrap();
    let port = crate::launcher::port::free(1).unwrap()[0];
    let gateway = Gateway::parse(&format!("127.0.0.1:{port}")).unwrap();
    let _stop = CancellationToken::new().drop_guard();
    let nobody = Server { gateway, _stop };
    let (why, stays) = refused(&nobody, &token(), &pins(&authority)).await;
    assert!(
        why.starts_with(&format!("127.0.0.1:{port} cannot be reached: ")),
        "{why}"
    );
    assert!(!stays);
}
