//! A hostile user beside a normal one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::poll;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use setpoint_proto::setpoint::ListRequest;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Fair, metric};
use crate::http::api::{CONFIGMAPS, configmap};

const SEATS: usize = 8;
const QUEUE: usize = 5;
/// The connections of the hostile user, for each of its attacks: more than have a seat or a place in its queues.
const CONNECTIONS: usize = 40;
const WATCHES: usize = 100;
const RESETS: usize = 500;
/// The objects that the hostile user lists.
const LISTED: usize = 50;
/// The time for which it rests after a rejection: less than it is told.
const REST: Duration = Duration::from_millis(5);
/// The creates of the normal user.
const CREATES: usize = 30;

/// The answers to the hostile user.
#[derive(Default)]
struct Attack {
    is_over: AtomicBool,
    served: AtomicUsize,
    rejected: AtomicUsize,
    others: AtomicUsize,
}

impl Attack {
    fn count(&self, code: u16) {
        let counter = match code {
            200 => &self.served,
            429 => &self.rejected,
            _ => &self.others,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// The headers of a user, who claims to be a program of the control plane.
fn head(user: &str) -> String {
    format!(
        "Host: localhost\r\nImpersonate-User: {user}\r\nImpersonate-Group: tenants\r\n\
         Impersonate-Group: system:authenticated\r\nUser-Agent: kube-scheduler/v1.36.0\r\n\
         X-Remote-User: system:kube-scheduler\r\n"
    )
}

/// A connection of HTTP/1.1.
struct Connection(BufReader<TcpStream>);

impl Connection {
    async fn open(address: SocketAddr) -> io::Result<Self> {
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    async fn write(&mut self, request: &str) -> io::Result<()> {
        self.0.get_mut().write_all(request.as_bytes()).await
    }

    /// Returns the code of a response whose length is known.
    async fn response(&mut self) -> io::Result<u16> {
        let (mut code, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(status) = line.strip_prefix("http/1.1 ") {
                code = status[..3].parse().unwrap();
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().unwrap();
            } else if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok(code)
    }

    async fn ask(&mut self, request: &str) -> io::Result<u16> {
        self.write(request).await?;
        self.response().await
    }
}

/// Lists all objects again and again.
async fn lists(address: SocketAddr, attack: Arc<Attack>) -> io::Result<()> {
    let request = format!("GET {CONFIGMAPS} HTTP/1.1\r\n{}\r\n", head("mallory"));
    let mut connection = Connection::open(address).await?;
    while attack.goes_on() {
        let code = connection.ask(&request).await?;
        attack.count(code);
        if code == 429 {
            tokio::time::sleep(REST).await;
        }
    }
    Ok(())
}

/// Begins a request whose body does not arrive. Returns the connection.
async fn hangs(address: SocketAddr) -> io::Result<Connection> {
    let request = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        head("mallory")
    );
    let mut connection = Connection::open(address).await?;
    connection.write(&request).await?;
    Ok(connection)
}

async fn watches(address: SocketAddr) -> io::Result<Connection> {
    let request = format!(
        "GET {CONFIGMAPS}?watch=true HTTP/1.1\r\n{}\r\n",
        head("mallory")
    );
    let mut connection = Connection::open(address).await?;
    connection.write(&request).await?;
    Ok(connection)
}

/// Begins requests on a connection of HTTP/2 and resets them at once.
async fn resets(address: SocketAddr, attack: Arc<Attack>) {
    for _ in 0..RESETS / 100 {
        let stream = TcpStream::connect(address).await.unwrap();
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut client, connection) = handshake.await.unwrap();
        let running = tokio::spawn(connection);
        for _ in 0..100 {
            // A connection that resets too much is closed.
            if client.ready().await.is_err() || !attack.goes_on() {
                break;
            }
            let request = Request::get(format!("http://localhost{CONFIGMAPS}"))
                .header("impersonate-user", "mallory")
                .header("impersonate-group", "tenants")
                .body(Full::<Bytes>::default())
                .unwrap();
            let mut sent = Box::pin(client.send_request(request));
            assert!(poll!(&mut sent).is_pending());
            tokio::task::yield_now().await;
        }
        drop(client);
        running.abort();
    }
}

/// Lists over gRPC.
async fn calls(url: String, attack: Arc<Attack>) {
    let mut client = ObjectsClient::connect(url).await.unwrap();
    while attack.goes_on() {
        let mut request = tonic::Request::new(ListRequest {
            resource: "configmaps".into(),
            ..ListRequest::default()
        });
        let metadata = request.metadata_mut();
        metadata.insert("impersonate-user", "mallory".parse().unwrap());
        metadata.insert("impersonate-group", "tenants".parse().unwrap());
        let code = client.list(request).await.map_or_else(
            |status| setpoint_proto::ApiError::from(status).code(),
            |_| 200,
        );
        attack.count(code);
    }
}

/// The rows of a debug page about the level of the tenants.
async fn rows(fair: &Fair, page: &str) -> Vec<Vec<String>> {
    let path = format!("/debug/api_priority_and_fairness/{page}");
    let text = fair.api.get(&path).await.body;
    let text = String::from_utf8(text.to_vec()).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("tenants,"));
    let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// Looks at the seats in use until the attack is over. Returns the most that were seen.
async fn most_seats(fair: &Fair, attack: &Attack) -> usize {
    let mut most = 0;
    while attack.goes_on() {
        let queues = rows(fair, "dump_queues").await;
        let seats = queues.iter().map(|row| row[4].parse::<usize>().unwrap());
        most = most.max(seats.sum());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    most
}

/// Creates objects one after another, and reads each. Returns the codes that are no success.
async fn creates(address: SocketAddr) -> Vec<u16> {
    let mut connection = Connection::open(address).await.unwrap();
    let mut failed = Vec::new();
    for number in 0..CREATES {
        let body = configmap(&format!("of-jane-{number}")).to_string();
        let create = format!(
            "POST {CONFIGMAPS} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            head("jane"),
            body.len()
        );
        let get = format!(
            "GET {CONFIGMAPS}/of-jane-{number} HTTP/1.1\r\n{}\r\n",
            head("jane")
        );
        for (request, expected) in [(create, 201), (get, 200)] {
            let code = connection.ask(&request).await.unwrap();
            if code != expected {
                failed.push(code);
            }
        }
    }
    failed
}

/// Checks V17 (CVE-2023-44487) and DG23, by counts: beside lists, bodies that hang, watches, resets and calls of a
/// hostile user, every request of a normal one in the same level is served, and the seats are as configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_user_does_not_keep_a_normal_one_from_being_served() {
    let fair = Arc::new(Fair::start(SEATS, QUEUE).await);
    let default = "/api/v1/namespaces/default";
    fair.api
        .eventually(default, |reply| reply.code == 200)
        .await;
    for number in 0..LISTED {
        fair.api.configmap(&format!("many-{number}")).await;
    }
    let server = fair.api.listen().await;
    let (address, attack) = (server.address, Arc::new(Attack::default()));
    let hanging = join_all((0..CONNECTIONS).map(|_| hangs(address))).await;
    let watching = join_all((0..WATCHES).map(|_| watches(address))).await;
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        tasks.spawn(until_cut(lists(address, attack.clone())));
    }
    for _ in 0..4 {
        tasks.spawn(calls(server.url.clone(), attack.clone()));
    }
    tasks.spawn(resets(address, attack.clone()));
    let observed = tokio::spawn({
        let (fair, attack) = (fair.clone(), attack.clone());
        async move { most_seats(&fair, &attack).await }
    });
    while attack.rejected.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let failed = creates(address).await;
    attack.is_over.store(true, Ordering::Relaxed);
    let most = observed.await.unwrap();
    while tasks.join_next().await.is_some() {}
    assert_eq!(failed, [0_u16; 0], "codes of the normal user");
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    assert!(count(&attack.rejected) > 0 && count(&attack.served) > 0);
    assert_eq!(count(&attack.others), 0);
    assert!((1..=SEATS).contains(&most), "{most} seats were in use");
    assert_eq!(hanging.len() + watching.len(), CONNECTIONS + WATCHES);
    drop((hanging, watching));
    until_idle(&fair).await;
}

/// Runs an attack. Its connection may be cut; what was answered before counts.
async fn until_cut(work: impl Future<Output = io::Result<()>>) {
    let _ = work.await;
}

/// Waits until the level has no requests, and neither seats nor metrics remain of them.
async fn until_idle(fair: &Fair) {
    for _ in 0..1000 {
        let levels = rows(fair, "dump_priority_levels").await;
        if levels[0][2] == "true" {
            let of = |name: &str| {
                metric(&format!(
                    r#"{name}{{flow_schema="tenants",priority_level="tenants"}}"#
                ))
            };
            assert_eq!(
                of("current_executing_requests") + of("current_inqueue_requests"),
                0
            );
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!(
        "{:?}",
        rows(fair, "dump_requests?includeRequestDetails=1").await
    );
}
