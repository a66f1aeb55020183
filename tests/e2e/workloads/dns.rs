//! The cluster's DNS: names of real Services and Pods, without gateways, and replicas that end.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};
use setpoint_tests::{Cluster, Size, eventually, free_port};

use super::{cluster_of, create, until, value};

const OBJECTS: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: db}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: web.default.svc.cluster.local}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: db}]}
"#;

const SLICES: &str = "endpointslices -n kube-system -l kubernetes.io/service-name=kube-dns";
/// The time that a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts `dns-<n>`, whose endpoint has an address of its own, and returns where it answers.
fn start(cluster: &mut Cluster, n: usize, flags: &[&str]) -> SocketAddr {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let own = [
        format!("--dns-listen={address}"),
        // An endpoint must not be of the loopback. Nobody asks there.
        format!("--registration-advertise-address=10.99.0.{}", n + 1),
        "--forward-upstreams=none".to_owned(),
    ];
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let flags: Vec<_> = own.into_iter().chain(flags).collect();
    cluster.service("dns", n, &flags);
    address
}

fn question(name: &str, of: RecordType) -> Vec<u8> {
    let mut message = Message::new(rand::random(), MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), of));
    message.to_vec().unwrap()
}

/// Returns the answer as text: data of the records in order, or the code of an error.
fn text(answer: &[u8]) -> String {
    let answer = Message::from_vec(answer).unwrap();
    if answer.metadata.response_code != ResponseCode::NoError {
        return answer.metadata.response_code.to_string();
    }
    let mut data: Vec<_> = answer
        .answers
        .iter()
        .map(|one| one.data.to_string())
        .collect();
    data.sort();
    data.join(" ")
}

fn ask(server: SocketAddr, name: &str, of: RecordType) -> Result<String, String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect(server).unwrap();
    let sent = socket.send(&question(name, of));
    sent.map_err(|error| error.to_string())?;
    let mut buffer = [0; 2048];
    let length = socket
        .recv(&mut buffer)
        .map_err(|error| error.to_string())?;
    Ok(text(&buffer[..length]))
}

fn ask_by_tcp(server: SocketAddr, name: &str, of: RecordType) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let bytes = question(name, of);
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    stream.write_all(&[&length, &*bytes].concat()).unwrap();
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut answer).unwrap();
    text(&answer)
}

#[track_caller]
fn until_answered(server: SocketAddr, name: &str, of: RecordType, wanted: &str) {
    eventually(&format!("{name} is {wanted:?}"), || {
        let found = ask(server, name, of)?;
        (found == wanted).then_some(()).ok_or(found)
    });
}

/// Asserts that a replica answers for the objects, whose addresses these are.
fn assert_answers(server: SocketAddr, web: &str, first: &str) {
    until_answered(server, "web.default.svc.cluster.local.", RecordType::A, web);
    until_answered(
        server,
        "db-0.db.default.svc.cluster.local.",
        RecordType::A,
        first,
    );
    let found = ask_by_tcp(server, "alias.default.svc.cluster.local.", RecordType::A);
    assert_eq!(found, format!("{web} web.default.svc.cluster.local."));
    let absent = ask(server, "absent.default.svc.cluster.local.", RecordType::A);
    assert_eq!(absent.unwrap(), ResponseCode::NXDomain.to_string());
}

#[test]
fn names_resolve_without_gateways_and_the_endpoints_of_ended_replicas_go() {
    let mut cluster = cluster_of(Size {
        gateways: 2,
        process_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    let first = start(&mut cluster, 0, &[]);
    // It watches Pods, too.
    let second = start(&mut cluster, 1, &["--pods=verified"]);
    create(&kubectl, OBJECTS);
    until(&kubectl, "statefulset db", ".status.readyReplicas", "2");
    let ip = |object: &str, path| value(&kubectl, object, path);
    let web = ip("service web", ".spec.clusterIP");
    let pod = ip("pod db-0", ".status.podIP");
    for server in [first, second] {
        assert_answers(server, &web, &pod);
    }
    let dashed = format!("{}.default.pod.cluster.local.", pod.replace('.', "-"));
    until_answered(second, &dashed, RecordType::A, &pod);
    let other = "192-0-2-9.default.pod.cluster.local.";
    assert_eq!(ask(first, other, RecordType::A).unwrap(), "192.0.2.9");
    until_answered(
        second,
        other,
        RecordType::A,
        &ResponseCode::NXDomain.to_string(),
    );

    let own = "kube-dns.kube-system.svc.cluster.local.";
    until_answered(first, own, RecordType::A, "10.96.0.10");
    until(
        &kubectl,
        SLICES,
        ".items[*].endpoints[*].addresses[0]",
        "10.99.0.1 10.99.0.2",
    );

    for n in 0..2 {
        cluster.process(&format!("gateway-{n}")).kill();
    }
    for server in [first, second] {
        assert_answers(server, &web, &pod);
    }
    for n in 0..2 {
        cluster.process(&format!("gateway-{n}")).restart();
        cluster.wait_for_gateway(n);
    }
    kubectl.ok("delete service web");
    until_answered(
        first,
        "web.default.svc.cluster.local.",
        RecordType::A,
        &ResponseCode::NXDomain.to_string(),
    );

    let addresses = ".items[*].endpoints[*].addresses[0]";
    until(&kubectl, SLICES, addresses, "10.99.0.1 10.99.0.2");
    cluster.process("dns-1").kill();
    until(&kubectl, SLICES, addresses, "10.99.0.1");
    assert!(cluster.process("dns-0").stop(), "it exits without an error");
    until(&kubectl, SLICES, addresses, "");
}
