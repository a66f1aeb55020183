//! Measures requests in JSON over HTTP/2, as other clients than the services send them: creates, gets and lists.

use axum::http::{Method, Request, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use setpoint_tests::{Address, Cluster};

use crate::load::{self, Load};
use crate::process::cpu;
use crate::report::Report;
use crate::writes::{CALLERS, SIZE, raw_etcd};

/// Each connection carries the requests of as many callers.
const CONNECTIONS: usize = 8;
/// The number of ConfigMaps that a list returns.
const LISTED: usize = 100;

/// A folder of ConfigMaps that are read.
const READ: &str = "/api/v1/namespaces/bench-http/configmaps";
/// A folder of ConfigMaps that are created: lists of it would grow.
const WRITTEN: &str = "/api/v1/namespaces/default/configmaps";

type Connection = SendRequest<Full<Bytes>>;

/// A request that a caller repeats.
#[derive(Clone)]
struct Call {
    method: Method,
    url: String,
    body: Bytes,
}

/// Reports rates, latencies and CPU times, and the rate of compare-and-set in etcd of the same run.
pub async fn measure(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    let raw = raw_etcd(&cluster.etcd_url(), seconds).await?;
    report.add("raw etcd CAS beside HTTP", raw.rate, "/s");
    let url = cluster.gateway_url();
    let servers =
        ["gateway", "etcd"].map(|name| (name, cluster.process(&format!("{name}-0")).pid()));
    let mut bench = Bench {
        connections: connect(&url).await?,
        servers,
        seconds,
    };
    fill(&mut bench.connections[0], &url).await?;
    let create = created(&url);
    let creates = bench.run("create", |_| create.clone(), report).await?;
    report.add("HTTP creates ÷ raw etcd CAS", creates.rate / raw.rate, "");
    let get = |caller| Call::get(&url, &format!("{READ}/{}", name(caller)));
    bench.run("get", get, report).await?;
    let list = |_| Call::get(&url, &format!("{READ}?limit=500"));
    bench
        .run(&format!("list of {LISTED}"), list, report)
        .await?;
    Ok(())
}

/// Runs creates of ConfigMaps, whose names the gateway chooses.
pub async fn creates(gateway: &Address, seconds: f64) -> anyhow::Result<Load> {
    let bench = Bench {
        connections: connect(gateway).await?,
        servers: [],
        seconds,
    };
    let create = created(gateway);
    bench.load(vec![create; CALLERS]).await
}

/// The callers' connections, and the processes whose CPU time is measured.
struct Bench<const SERVERS: usize> {
    connections: Vec<Connection>,
    servers: [(&'static str, u32); SERVERS],
    seconds: f64,
}

impl<const SERVERS: usize> Bench<SERVERS> {
    /// Repeats each caller's request, and reports the figures of `what`.
    async fn run(
        &self,
        what: &str,
        call_of: impl Fn(usize) -> Call,
        report: &mut Report,
    ) -> anyhow::Result<Load> {
        let calls: Vec<_> = (0..CALLERS).map(call_of).collect();
        let before = self.servers.map(|(_, pid)| cpu(pid));
        let load = self.load(calls).await?;
        report.add(format!("HTTP {what} at {CALLERS} callers"), load.rate, "/s");
        for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
            report.add(format!("HTTP {what}, {name}"), load.percentile(share), "ms");
        }
        for ((name, pid), before) in self.servers.into_iter().zip(before) {
            let spent = load.per_call(cpu(pid) - before);
            report.add(format!("{name} CPU per HTTP {what}"), spent, "µs");
        }
        Ok(load)
    }

    async fn load(&self, calls: Vec<Call>) -> anyhow::Result<Load> {
        let connections = self.connections.clone();
        load::run(CALLERS, self.seconds, move |caller, _| {
            let mut connection = connections[caller % CONNECTIONS].clone();
            let call = calls[caller].clone();
            Box::pin(async move { call.send(&mut connection).await })
        })
        .await
    }
}

impl Call {
    fn get(url: &str, path: &str) -> Self {
        Self {
            method: Method::GET,
            url: format!("{url}{path}"),
            body: Bytes::new(),
        }
    }

    fn post(url: &str, path: &str, object: &Value) -> Self {
        Self {
            method: Method::POST,
            url: format!("{url}{path}"),
            body: object.to_string().into(),
        }
    }

    /// Sends the request, and reads the response to its end.
    async fn send(self, connection: &mut Connection) -> anyhow::Result<()> {
        let request = Request::builder()
            .method(self.method)
            .uri(self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(self.body))?;
        connection.ready().await?;
        let response = connection.send_request(request).await?;
        let status = response.status();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            frame?;
        }
        anyhow::ensure!(status.is_success(), "the gateway answers {status}");
        Ok(())
    }
}

/// Opens the connections to a gateway.
async fn connect(gateway: &Address) -> anyhow::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let io = TokioIo::new(gateway.connect_http2().await?);
        let (connection, driver) = http2::handshake(TokioExecutor::new(), io).await?;
        tokio::spawn(driver);
        connections.push(connection);
    }
    Ok(connections)
}

/// Creates what is read.
async fn fill(connection: &mut Connection, url: &str) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": "bench-http"}});
    let namespaces = "/api/v1/namespaces";
    Call::post(url, namespaces, &namespace)
        .send(connection)
        .await?;
    for n in 0..LISTED {
        let object = config_map(json!({"name": name(n)}));
        Call::post(url, READ, &object).send(connection).await?;
    }
    Ok(())
}

/// Returns the creation of a ConfigMap whose name the gateway chooses.
fn created(url: &str) -> Call {
    let object = config_map(json!({"generateName": "bench-"}));
    Call::post(url, WRITTEN, &object)
}

fn name(n: usize) -> String {
    format!("read-{n}")
}

/// Returns a ConfigMap of 1 KB.
fn config_map(metadata: Value) -> Value {
    json!({"metadata": metadata, "data": {"data": "x".repeat(SIZE)}})
}
