//! The server over real sockets, with upstream servers of the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use parking_lot::RwLock;
use setpoint_dns::{ForwardSettings, Forwarder, Limits, Responder, Server, SliceView, UDP_PAYLOAD};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cluster::{change, index, pod, query, service, slice, zone};

const DEADLINE: Duration = Duration::from_secs(20);

/// A server until it is dropped.
struct Serving {
    address: SocketAddr,
    forwarder: Forwarder,
    synced: watch::Sender<bool>,
    _stop: tokio_util::sync::DropGuard,
}

fn forwarding() -> ForwardSettings {
    ForwardSettings {
        timeout: Duration::from_millis(200),
        deadline: Duration::from_millis(500),
        ..ForwardSettings::default()
    }
}

async fn serve(upstreams: Vec<SocketAddr>, settings: ForwardSettings, limits: Limits) -> Serving {
    serve_pods(upstreams, settings, limits, &[]).await
}

/// Starts a server with Pods at these addresses.
async fn serve_pods(
    upstreams: Vec<SocketAddr>,
    settings: ForwardSettings,
    limits: Limits,
    pods: &[&str],
) -> Serving {
    let server = Server::bind((Ipv4Addr::LOCALHOST, 0).into(), limits)
        .await
        .unwrap();
    let address = server.address().unwrap();
    // `upstreams` may name the server itself, as port 0.
    let upstreams = upstreams
        .into_iter()
        .map(|one| if one.port() == 0 { address } else { one });
    let forwarder = Forwarder::new(upstreams.collect(), settings);
    let (synced, is_synced) = watch::channel(true);
    let mut objects = index();
    let many: Vec<_> = (0..4000)
        .map(|n| format!("/10.1.{}.{}", n / 200, n % 200))
        .collect();
    let many: Vec<&str> = many.iter().map(|one| &**one).collect();
    objects.service_changed(&change(None, Some(service("many", "None", &[]))));
    objects.slice_changed(&change::<SliceView>(
        None,
        Some(slice("many-x", "many", &many, &[])),
    ));
    for address in pods {
        objects.pod_changed(&change(None, Some(pod("client", address))));
    }
    let responder = Responder {
        zone: zone(),
        index: Arc::new(RwLock::new(objects)),
        synced: is_synced,
        serial: Arc::new(AtomicU32::new(7)),
        forwarder: forwarder.clone(),
        autopath: Some(Vec::new()),
    };
    let stop = CancellationToken::new();
    tokio::spawn(server.run(responder, stop.clone()));
    Serving {
        address,
        forwarder,
        synced,
        _stop: stop.drop_guard(),
    }
}

async fn cluster_only() -> Serving {
    serve(Vec::new(), forwarding(), Limits::default()).await
}

fn message(query: Query, payload: Option<u16>) -> Message {
    let mut message = Message::new(4711, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(query);
    if let Some(payload) = payload {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        message.set_edns(edns);
    }
    message
}

async fn by_udp(server: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    socket.send_to(bytes, server).await.unwrap();
    let mut buffer = vec![0; 65_535];
    let length = timeout(DEADLINE, socket.recv(&mut buffer))
        .await
        .unwrap()
        .unwrap();
    buffer.truncate(length);
    buffer
}

async fn ask(server: SocketAddr, name: &str, of: RecordType) -> Message {
    let bytes = message(query(name, of), None).to_vec().unwrap();
    Message::from_vec(&by_udp(server, &bytes).await).unwrap()
}

async fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Option<Message> {
    let length = u16::try_from(bytes.len()).unwrap();
    stream
        .write_all(&[&length.to_be_bytes(), bytes].concat())
        .await
        .ok()?;
    let length = timeout(DEADLINE, stream.read_u16()).await.unwrap().ok()?;
    let mut answer = vec![0; length.into()];
    stream.read_exact(&mut answer).await.ok()?;
    Some(Message::from_vec(&answer).unwrap())
}

fn ips(message: &Message) -> Vec<String> {
    let data = message.answers.iter().filter_map(|one| match &one.data {
        RData::A(a) => Some(a.to_string()),
        _ => None,
    });
    data.collect()
}

/// An upstream server that answers by `reply`, and counts the questions.
async fn upstream(
    reply: impl Fn(&Query, &mut Message) + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = socket.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            count.fetch_add(1, Ordering::SeqCst);
            let question = Message::from_vec(&buffer[..length]).unwrap();
            let mut answer =
                Message::new(question.metadata.id, MessageType::Response, OpCode::Query);
            answer.add_query(question.queries[0].clone());
            reply(&question.queries[0], &mut answer);
            socket
                .send_to(&answer.to_vec().unwrap(), from)
                .await
                .unwrap();
        }
    });
    (address, asked)
}

fn found(query: &Query, answer: &mut Message) {
    let data = RData::A(A::new(192, 0, 2, 1));
    answer.add_answer(Record::from_rdata(query.name().clone(), 60, data));
}

/// Knows `www.example.com` alone.
fn only_www(query: &Query, answer: &mut Message) {
    if query.name().to_ascii() == "www.example.com." {
        return found(query, answer);
    }
    answer.metadata.response_code = ResponseCode::NXDomain;
    let soa = SOA::new(Name::root(), Name::root(), 1, 1, 1, 1, 60);
    answer.add_authority(Record::from_rdata(Name::root(), 60, RData::SOA(soa)));
}

#[tokio::test]
async fn both_protocols_answer_and_echo_the_question_in_its_own_case() {
    let server = cluster_only().await;
    let answer = ask(
        server.address,
        "Web.default.SVC.cluster.local.",
        RecordType::A,
    )
    .await;
    assert_eq!(ips(&answer), ["10.96.0.20"]);
    assert!(answer.metadata.authoritative && answer.metadata.recursion_available);
    assert_eq!(answer.metadata.id, 4711);
    assert_eq!(
        answer.queries[0].name().to_ascii(),
        "Web.default.SVC.cluster.local."
    );
    assert!(answer.edns.is_none(), "the client has no EDNS");

    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = message(query("web.default.svc.cluster.local.", RecordType::A), None)
        .to_vec()
        .unwrap();
    for _ in 0..2 {
        let answer = exchange(&mut stream, &bytes).await.unwrap();
        assert_eq!(ips(&answer), ["10.96.0.20"]);
    }
}

#[tokio::test]
async fn absence_comes_with_the_record_that_says_for_how_long() {
    let server = cluster_only().await;
    for (name, code) in [
        ("absent.default.svc.cluster.local.", ResponseCode::NXDomain),
        ("default.svc.cluster.local.", ResponseCode::NoError),
    ] {
        let answer = ask(server.address, name, RecordType::A).await;
        assert_eq!(answer.metadata.response_code, code);
        let RData::SOA(soa) = &answer.authorities[0].data else {
            panic!("{answer}");
        };
        assert_eq!(
            (soa.minimum, soa.serial, answer.authorities[0].ttl),
            (30, 7, 30)
        );
    }
}

#[tokio::test]
async fn an_answer_is_no_longer_than_the_client_takes_and_whole_by_tcp() {
    let server = cluster_only().await;
    let many = || query("many.default.svc.cluster.local.", RecordType::A);
    let payload = usize::from(UDP_PAYLOAD);
    for (asked, most) in [
        (None, 512),
        (Some(100), 512),
        (Some(900), 900),
        (Some(65_000), payload),
    ] {
        let bytes = message(many(), asked).to_vec().unwrap();
        let answer = by_udp(server.address, &bytes).await;
        assert!(
            answer.len() <= most && answer.len() > most - 40,
            "{} of {most}",
            answer.len()
        );
        let answer = Message::from_vec(&answer).unwrap();
        assert!(answer.metadata.truncation && !answer.answers.is_empty());
        assert_eq!(answer.edns.is_some(), asked.is_some());
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = message(many(), None).to_vec().unwrap();
    let answer = exchange(&mut stream, &bytes).await.unwrap();
    assert_eq!(
        (answer.metadata.truncation, answer.answers.len()),
        (false, 4000)
    );
}

#[tokio::test]
async fn malformed_messages_are_errors_and_what_is_no_question_has_no_answer() {
    let server = cluster_only().await;
    let code = async |change: fn(&mut Message)| {
        let mut question = message(
            query("web.default.svc.cluster.local.", RecordType::A),
            Some(1232),
        );
        change(&mut question);
        let answer = by_udp(server.address, &question.to_vec().unwrap()).await;
        let answer = Message::from_vec(&answer).unwrap();
        assert_eq!(answer.metadata.id, 4711);
        answer.metadata.response_code
    };
    assert_eq!(code(|one| one.queries.clear()).await, ResponseCode::FormErr);
    assert_eq!(
        code(|one| one.queries.push(one.queries[0].clone())).await,
        ResponseCode::FormErr
    );
    assert_eq!(
        code(|one| one.metadata.op_code = OpCode::Update).await,
        ResponseCode::NotImp
    );
    assert_eq!(
        code(|one| _ = one.queries[0].set_query_class(DNSClass::CH)).await,
        ResponseCode::Refused
    );
    assert_eq!(
        code(|one| _ = one.queries[0].set_query_type(RecordType::AXFR)).await,
        ResponseCode::Refused
    );
    let version = |one: &mut Message| _ = one.edns.as_mut().unwrap().set_version(1);
    // The number has two names.
    assert_eq!(
        u16::from(code(version).await),
        u16::from(ResponseCode::BADVERS)
    );
    // A header that promises a question.
    let cut = [0x12, 0x67, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 63];
    let answer = by_udp(server.address, &cut).await;
    assert_eq!(
        Message::from_vec(&answer).unwrap().metadata.response_code,
        ResponseCode::FormErr
    );

    // Neither has an answer: the first to come is that of the question after them.
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let mut reply = message(query("web.default.svc.cluster.local.", RecordType::A), None);
    reply.metadata.message_type = MessageType::Response;
    reply.metadata.id = 1;
    let question = message(query("web.default.svc.cluster.local.", RecordType::A), None);
    for bytes in [
        vec![0; 5],
        Vec::new(),
        reply.to_vec().unwrap(),
        question.to_vec().unwrap(),
    ] {
        socket.send_to(&bytes, server.address).await.unwrap();
    }
    let mut buffer = [0; 512];
    let length = timeout(DEADLINE, socket.recv(&mut buffer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        Message::from_vec(&buffer[..length]).unwrap().metadata.id,
        4711
    );
}

#[tokio::test]
async fn slow_clients_end_and_do_not_keep_others_from_connecting() {
    let limits = Limits {
        connections: 4,
        connections_per_client: 2,
        idle: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = serve(Vec::new(), forwarding(), limits).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&[0]).await.unwrap();
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    // The third of one client is closed at once.
    let mut third = TcpStream::connect(server.address).await.unwrap();
    for stream in [&mut third, &mut slow, &mut silent] {
        let end = timeout(DEADLINE, stream.read(&mut [0; 1])).await.unwrap();
        assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    }
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let bytes = message(query("web.default.svc.cluster.local.", RecordType::A), None)
        .to_vec()
        .unwrap();
    assert!(exchange(&mut stream, &bytes).await.is_some());
}

#[tokio::test]
async fn other_names_are_forwarded_and_their_answers_kept() {
    let (address, asked) = upstream(only_www).await;
    let server = serve(vec![address], forwarding(), Limits::default()).await;
    for _ in 0..3 {
        let answer = ask(server.address, "www.example.com.", RecordType::A).await;
        assert_eq!(ips(&answer), ["192.0.2.1"]);
        assert!(!answer.metadata.authoritative);
        let absent = ask(server.address, "absent.example.com.", RecordType::A).await;
        assert_eq!(absent.metadata.response_code, ResponseCode::NXDomain);
        assert_eq!(absent.authorities.len(), 1);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_alias_of_the_cluster_is_completed_elsewhere() {
    let (address, _) = upstream(only_www).await;
    let server = serve(vec![address], forwarding(), Limits::default()).await;
    let answer = ask(
        server.address,
        "shop.default.svc.cluster.local.",
        RecordType::A,
    )
    .await;
    assert_eq!(answer.answers[0].record_type(), RecordType::CNAME);
    assert_eq!(ips(&answer), ["192.0.2.1"]);
}

#[tokio::test]
async fn a_dead_upstream_server_is_an_error_in_time_and_another_one_is_asked() {
    let dead = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let dead = dead.local_addr().unwrap();
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let silent_address = silent.local_addr().unwrap();
    let server = serve(vec![dead, silent_address], forwarding(), Limits::default()).await;
    let answer = ask(server.address, "www.example.com.", RecordType::A).await;
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);

    let (good, _) = upstream(found).await;
    let server = serve(vec![silent_address, good], forwarding(), Limits::default()).await;
    let answer = ask(server.address, "www.example.com.", RecordType::A).await;
    assert_eq!(ips(&answer), ["192.0.2.1"]);
}

#[tokio::test]
async fn questions_that_wait_for_upstream_servers_are_bounded() {
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let settings = ForwardSettings {
        concurrent: 1,
        timeout: DEADLINE,
        deadline: DEADLINE,
        ..forwarding()
    };
    let server = serve(
        vec![silent.local_addr().unwrap()],
        settings,
        Limits::default(),
    )
    .await;
    let waiting = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let bytes = message(query("a.example.com.", RecordType::A), None)
        .to_vec()
        .unwrap();
    waiting.send_to(&bytes, server.address).await.unwrap();
    // It waits once its question has arrived upstream.
    timeout(DEADLINE, silent.recv(&mut [0; 512]))
        .await
        .unwrap()
        .unwrap();
    let answer = ask(server.address, "b.example.com.", RecordType::A).await;
    assert_eq!(answer.metadata.response_code, ResponseCode::Refused);
    let own = ask(
        server.address,
        "web.default.svc.cluster.local.",
        RecordType::A,
    )
    .await;
    assert_eq!(ips(&own), ["10.96.0.20"]);
}

#[tokio::test]
async fn a_server_that_leads_back_here_is_not_asked_any_more() {
    let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (good, asked) = upstream(found).await;
    let server = serve(vec![own, good], forwarding(), Limits::default()).await;
    server.forwarder.probe_loops().await;
    assert!(server.forwarder.loops().is_looping(0) && !server.forwarder.loops().is_looping(1));
    let probes = asked.load(Ordering::SeqCst);
    let answer = ask(server.address, "www.example.com.", RecordType::A).await;
    assert_eq!(ips(&answer), ["192.0.2.1"]);
    assert_eq!(asked.load(Ordering::SeqCst), probes + 1);
}

#[tokio::test]
async fn names_of_the_cluster_fail_until_the_objects_are_known() {
    let server = cluster_only().await;
    server.synced.send_replace(false);
    let answer = ask(
        server.address,
        "absent.default.svc.cluster.local.",
        RecordType::A,
    )
    .await;
    assert_eq!(answer.metadata.response_code, ResponseCode::ServFail);
    server.synced.send_replace(true);
    let answer = ask(
        server.address,
        "absent.default.svc.cluster.local.",
        RecordType::A,
    )
    .await;
    assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain);
}

#[tokio::test]
async fn a_walk_along_the_search_path_of_a_pod_has_one_answer() {
    let (address, _) = upstream(only_www).await;
    let (settings, limits) = (forwarding(), Limits::default());
    let server = serve_pods(vec![address], settings, limits, &["127.0.0.1"]).await;
    for (base, alias, ip) in [
        ("www.example.com", "www.example.com.", "192.0.2.1"),
        (
            "kube-dns.kube-system",
            "kube-dns.kube-system.svc.cluster.local.",
            "10.96.0.10",
        ),
    ] {
        let asked = format!("{base}.default.svc.cluster.local.");
        let answer = ask(server.address, &asked, RecordType::A).await;
        assert_eq!(answer.answers[0].name.to_ascii(), asked);
        assert_eq!(answer.answers[0].data.to_string(), alias);
        assert_eq!(ips(&answer), [ip]);
    }
    let nowhere = "nothing.example.com.default.svc.cluster.local.";
    let answer = ask(server.address, nowhere, RecordType::A).await;
    assert_eq!(answer.metadata.response_code, ResponseCode::NXDomain);
    assert!(answer.answers.is_empty());
    assert_eq!(answer.authorities[0].name.to_ascii(), "cluster.local.");
}
