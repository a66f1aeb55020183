//! Health checks of Services with the external policy Local.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

use serde_json::{Value, json};
use setpoint_model::Key;
use setpoint_proxy::Place;
use setpoint_proxy::health::{HealthCheck, Servers, health_check};

use crate::objects::{Scene, endpoint, here, ready};
use crate::sites::{on, two, web};

fn checked() -> Value {
    json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 31000})
}

fn counts(scene: &Scene, place: &Arc<Place>) -> Vec<(String, usize)> {
    let check = health_check(&scene.world(place));
    let endpoints = check.into_iter().flat_map(|check| check.endpoints);
    endpoints
        .map(|(at, count)| (at.to_string(), count))
        .collect()
}

#[test]
fn each_node_reports_the_ready_endpoints_of_its_own() {
    let scene = web(&[1]).spec(checked());
    let expected = [("192.0.2.11:31000", 1), ("192.0.2.12:31000", 0)];
    let expected = expected.map(|(at, count)| (at.to_owned(), count));
    assert_eq!(counts(&scene, &two()), expected);
    let ending = endpoint("10.1.1.3", "node-1", [false, true, true]);
    let again = scene.slice(8081, &[ending, on(1), on(2)]);
    let expected = expected.map(|(at, _)| (at, 1));
    assert_eq!(
        counts(&again, &two()),
        expected,
        "endpoints are counted once"
    );
}

#[test]
fn a_machine_of_one_node_reports_at_its_address_or_at_all() {
    let scene = Scene::new("web", "10.96.0.10").slice(80, &[ready("10.1.1.2", "here")]);
    let scene = scene.spec(checked());
    assert_eq!(counts(&scene, &here()), [("192.0.2.1:31000".to_owned(), 1)]);
    let ranges = Place {
        addresses: ["127.0.0.0/8".parse().unwrap()].into(),
        ..(*here()).clone()
    };
    let expected = [("0.0.0.0:31000".to_owned(), 1)];
    assert_eq!(counts(&scene, &Arc::new(ranges)), expected);
}

#[test]
fn other_services_have_no_health_check() {
    let with = |name: &str, value: &str| {
        let mut fields = checked();
        fields[name] = json!(value);
        health_check(&web(&[1]).spec(fields).world(&two()))
    };
    assert_eq!(with("externalTrafficPolicy", "Cluster"), None);
    assert_eq!(with("type", "NodePort"), None);
    assert_eq!(with("clusterIP", "None"), None);
}

fn free() -> SocketAddrV4 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string().parse().unwrap()
}

/// Sends a request, and returns the status, the weight and the body.
async fn get(at: SocketAddrV4) -> Option<(String, String, Value)> {
    let get = move || {
        let mut stream = TcpStream::connect(at).ok()?;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            .ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().to_owned();
        let head = head.to_lowercase();
        assert!(head.contains("content-type: application/json"), "{head}");
        let weight = head
            .split("x-load-balancing-endpoint-weight: ")
            .nth(1)
            .unwrap();
        let weight = weight.split("\r\n").next().unwrap().to_owned();
        Some((status, weight, serde_json::from_str(body).unwrap()))
    };
    tokio::task::spawn_blocking(get).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_health_check_answers_as_kube_proxy_while_its_service_has_one() {
    let (at, key) = (free(), Key::new("default", "web"));
    let mut servers = Servers::new(Box::new(|_, at, why| panic!("{at}: {why}")));
    let apply = |servers: &mut Servers, count: Option<usize>| {
        let check = count.map(|count| HealthCheck {
            endpoints: [(at, count)].into(),
        });
        servers.apply(BTreeMap::from([(key.clone(), check)]));
    };
    servers.set_healthy(true);
    apply(&mut servers, Some(2));
    let body = |count: usize, healthy: bool| {
        let service = json!({"namespace": "default", "name": "web"});
        json!({"service": service, "localEndpoints": count, "serviceProxyHealthy": healthy})
    };
    let expected = |status: &str, count: usize, healthy| {
        Some((status.to_owned(), count.to_string(), body(count, healthy)))
    };
    assert_eq!(get(at).await, expected("200", 2, true));
    apply(&mut servers, Some(0));
    assert_eq!(get(at).await, expected("503", 0, true));
    apply(&mut servers, Some(1));
    servers.set_healthy(false);
    assert_eq!(get(at).await, expected("503", 1, false));
    apply(&mut servers, None);
    tokio::task::yield_now().await;
    while get(at).await.is_some() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_reported_once_and_opened_once_it_is_free() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at: SocketAddrV4 = taken.local_addr().unwrap().to_string().parse().unwrap();
    let check = HealthCheck {
        endpoints: [(at, 1)].into(),
    };
    let (sender, reports) = mpsc::channel();
    let report = move |key: &Key, at, why: &io::Error| {
        let sent = sender.send((key.clone(), at, why.kind()));
        sent.unwrap();
    };
    let (mut servers, key) = (Servers::new(Box::new(report)), Key::new("default", "web"));
    servers.apply(BTreeMap::from([(key.clone(), Some(check))]));
    servers.retry();
    let expected = (key, at, io::ErrorKind::AddrInUse);
    assert_eq!(reports.try_iter().collect::<Vec<_>>(), [expected]);
    drop(taken);
    servers.retry();
    assert_eq!(get(at).await.unwrap().0, "503", "nothing is programmed yet");
}
