//! Tests of the back end of user space beyond the contract.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use setpoint_proxy::userspace::Limits;

use crate::contract::{PORT, Plane, at};
use crate::machine::ask;
use crate::objects::{Scene, ready};
use crate::world::{Loopback, Source, World as _};

const PATIENCE: Duration = Duration::from_secs(10);

pub fn plane(pods: u8, limits: Limits) -> Plane<Loopback> {
    let mut world = Loopback::new(pods).unwrap();
    world.limits = limits;
    Plane::of(world)
}

impl Plane<Loopback> {
    /// Starts a server of `web` that answers all it has read when the client has ended, and returns its Service.
    pub fn echo(&self, number: u8) -> Scene {
        let ip = self.world.pod(number);
        let listener = self
            .world
            .network
            .enter(|| TcpListener::bind((ip, 8081)).unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    while let Ok(count @ 1..) = stream.read(&mut buffer) {
                        if stream.write_all(&buffer[..count]).is_err() {
                            return;
                        }
                    }
                    let _ = stream.write_all(b" end");
                });
            }
        });
        self.scene(&[ip.to_string()], 8081)
    }

    fn scene(&self, endpoints: &[String], port: u16) -> Scene {
        let ports = json!([{"name": "http", "protocol": "TCP", "port": PORT}]);
        let endpoints: Vec<_> = endpoints.iter().map(|ip| ready(ip, "here")).collect();
        let scene = Scene::new("web", &self.world.service(10).to_string());
        scene.spec(json!({"ports": ports})).slice(port, &endpoints)
    }

    pub fn open(&self) -> io::Result<TcpStream> {
        self.world.network.open(Ipv4Addr::UNSPECIFIED, &self.at())
    }
}

/// Sends a word, and returns its echo.
pub fn echo(stream: &mut TcpStream, word: &str) -> io::Result<String> {
    stream.write_all(word.as_bytes())?;
    let mut echo = vec![0; word.len()];
    stream.read_exact(&mut echo)?;
    Ok(String::from_utf8_lossy(&echo).into_owned())
}

#[test]
fn an_open_connection_stays_when_the_service_changes_and_goes() {
    let mut plane = plane(2, Limits::default());
    let scene = plane.echo(1);
    plane.set(&scene);
    let mut stream = plane.open().unwrap();
    assert_eq!(echo(&mut stream, "one").unwrap(), "one");
    plane.set(&plane.web(&[2]));
    assert_eq!(echo(&mut stream, "two").unwrap(), "two");
    plane.program(scene.removal());
    plane.refused(&plane.at());
    assert_eq!(echo(&mut stream, "three").unwrap(), "three");
    // The end of one direction is passed on, and the other one goes on.
    stream.shutdown(Shutdown::Write).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, " end");
}

#[test]
fn many_bytes_go_both_ways_at_once() {
    let mut plane = plane(1, Limits::default());
    plane.set(&plane.echo(1));
    let mut stream = plane.open().unwrap();
    let bytes: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 253) as u8).collect();
    let (mut writer, sent) = (stream.try_clone().unwrap(), bytes.clone());
    let writer = thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert!(received.strip_suffix(b" end") == Some(&bytes));
}

#[test]
fn an_endpoint_that_does_not_accept_is_passed_over() {
    let mut plane = plane(1, Limits::default());
    let ips = [2, 1, 3].map(|number| plane.world.pod(number).to_string());
    plane.set(&plane.scene(&ips, 8080));
    let to = plane.at();
    for _ in 0..12 {
        let answer = plane.world.connect(Source::Machine, &to).unwrap();
        assert!(answer.starts_with("pod1 "), "{answer}");
    }
    // If none does, the client is told.
    plane.set(&plane.scene(&ips[..1], 8080));
    let error = plane.world.connect(Source::Machine, &to).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_endpoint_that_is_a_front_is_none() {
    let mut plane = plane(1, Limits::default());
    let itself = plane.world.service(10).to_string();
    plane.set(&plane.scene(&[itself], PORT));
    let error = plane
        .world
        .connect(Source::Machine, &plane.at())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(metrics().contains(r#"setpoint_proxy_connect_failures_total{protocol="tcp"} 1"#));
}

#[test]
fn connections_beyond_the_limit_are_reset_and_counted() {
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let mut plane = plane(1, limits);
    plane.set(&plane.echo(1));
    let mut first = plane.open().unwrap();
    echo(&mut first, "one").unwrap();
    let mut second = plane.open().unwrap();
    echo(&mut second, "two").unwrap();
    let third = plane.open().and_then(|mut third| echo(&mut third, "three"));
    assert_eq!(third.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let text = metrics();
    assert!(
        text.contains(r#"setpoint_proxy_refused_sessions_total{protocol="tcp",reason="limit"} 1"#),
        "{text}"
    );
    assert!(
        text.contains(r#"setpoint_proxy_sessions{protocol="tcp"} 2"#),
        "{text}"
    );
    drop(first);
    let until = Instant::now() + PATIENCE;
    while plane
        .open()
        .and_then(|mut next| echo(&mut next, "next"))
        .is_err()
    {
        assert!(Instant::now() < until, "the first connection has ended");
    }
}

fn metrics() -> String {
    let families = prometheus::gather();
    prometheus::TextEncoder::new()
        .encode_to_string(&families)
        .unwrap()
}

#[test]
fn a_port_that_is_taken_is_reported_and_the_others_work() {
    let mut plane = plane(2, Limits::default());
    let taken = plane.world.service(10);
    let taken = plane
        .world
        .network
        .enter(|| TcpListener::bind((taken, PORT)).unwrap());
    plane.set(&plane.web(&[1]));
    let other = Scene::new("other", &plane.world.service(11).to_string());
    let ports = json!([{"name": "http", "protocol": "TCP", "port": PORT}]);
    plane.set(
        &other
            .spec(json!({"ports": ports}))
            .slice(8080, &[plane.pod(2)]),
    );
    let (service, message) = plane.world.reported.recv_timeout(PATIENCE).unwrap();
    assert_eq!(service.to_string(), "default/web");
    let expected = format!(
        "cannot listen on {} (TCP): address already in use",
        plane.at()
    );
    assert_eq!(message, expected);
    let to = at(plane.world.service(11));
    let answer = plane.world.connect(Source::Machine, &to).unwrap();
    assert!(answer.starts_with("pod2 "), "{answer}");
    // It is tried again.
    drop(taken);
    let until = Instant::now() + PATIENCE;
    while plane.world.connect(Source::Machine, &plane.at()).is_err() {
        assert!(Instant::now() < until, "the port is free");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_front_that_stays_keeps_its_socket() {
    let mut plane = plane(2, Limits::default());
    plane.set(&plane.web(&[1]));
    let to = plane.at();
    for number in [2, 1, 2] {
        plane.set(&plane.web(&[number]));
        let answer = plane.world.connect(Source::Machine, &to).unwrap();
        assert!(answer.starts_with(&format!("pod{number} ")), "{answer}");
    }
    assert!(
        plane.world.reported.try_recv().is_err(),
        "no address was taken twice"
    );
}

fn dns(plane: &Plane<Loopback>, port: u16) -> Scene {
    let named = |port| json!({"name": "dns", "protocol": "UDP", "port": port});
    let scene = Scene::new("dns", &plane.world.service(10).to_string());
    let scene = scene.spec(json!({"ports": [named(PORT)]}));
    scene.slice_of(&[named(port)], &[plane.pod(1), plane.pod(2)])
}

#[test]
fn flows_end_when_they_are_idle_and_the_oldest_when_there_are_too_many() {
    let limits = Limits {
        flows: 2,
        flow_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let mut plane = plane(2, limits);
    plane.set(&dns(&plane, 8080));
    let to = plane.at();
    let sockets: Vec<_> = (1..=5)
        .map(|_| plane.world.udp(Source::Machine, &to))
        .collect();
    for socket in &sockets {
        ask(socket).unwrap();
    }
    let open = || metrics().contains(r#"setpoint_proxy_sessions{protocol="udp"} 2"#);
    assert!(open());
    let until = Instant::now() + PATIENCE;
    while !metrics().contains(r#"setpoint_proxy_sessions{protocol="udp"} 0"#) {
        assert!(Instant::now() < until, "the flows end");
        thread::sleep(Duration::from_millis(20));
    }
    ask(&sockets[0]).unwrap();
}

#[test]
fn a_flow_to_an_endpoint_that_refuses_moves_to_another() {
    let mut plane = plane(1, Limits::default());
    // The second Pod has no server.
    plane.set(&dns(&plane, 8080));
    let to = plane.at();
    for _ in 0..4 {
        let socket = plane.world.udp(Source::Machine, &to);
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let until = Instant::now() + PATIENCE;
        while ask(&socket).is_err() {
            assert!(Instant::now() < until, "the other endpoint answers");
        }
    }
}
