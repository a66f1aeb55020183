//! A client that follows ready Pods has no failed request while they change.
//!
//! It follows the Pods themselves: the addresses of process nodes are in 127/8, which EndpointSlices must not have.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use setpoint_controller::Whole;
use setpoint_model::pod::is_ready;
use setpoint_proto::core::Pod;
use setpoint_tests::{Address, Cluster, Kubectl, Size, client, eventually, free_port};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::web::text;

/// Concurrent senders, and the pause of each between two requests: some 200 requests a second.
const SENDERS: usize = 4;
const PAUSE: Duration = Duration::from_millis(20);
/// The number of requests in each phase beside those that are sent while the Pods change.
const REQUESTS: usize = 200;

/// A server in Python. It is sick while the file `sick-<Pod>` exists, and kills itself at `/die`.
const SERVER: &str = r#"
import http.server, os, signal
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            os.kill(os.getpid(), signal.SIGKILL)
        sick = self.path == "/healthz" and os.path.exists(os.environ["SICK"])
        self.send_response(500 if sick else 200)
        self.end_headers()
    def log_message(self, *words):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256
Server((os.environ["POD_IP"], int(os.environ["PORT"])), Handler).serve_forever()
"#;

/// Returns a Deployment whose Pods serve for five seconds after they are to end.
fn manifest(port: u16, directory: &str) -> String {
    let server = SERVER.replace('\n', "\n          ");
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 3
  strategy: {{rollingUpdate: {{maxUnavailable: 0, maxSurge: 1}}}}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      terminationGracePeriodSeconds: 20
      containers:
      - name: main
        image: python
        command:
        - python3
        - -c
        - |{server}
        env:
        - {{name: POD_NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}
        - {{name: POD_IP, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}
        - {{name: PORT, value: '{port}'}}
        - {{name: SICK, value: {directory}/sick-$(POD_NAME)}}
        readinessProbe: {{httpGet: {{path: /healthz, port: {port}}}, periodSeconds: 1, failureThreshold: 1}}
        livenessProbe: {{httpGet: {{path: /healthz, port: {port}}}, periodSeconds: 1, failureThreshold: 5, initialDelaySeconds: 5}}
        lifecycle: {{preStop: {{sleep: {{seconds: 5}}}}}}
"
    )
}

/// Sends requests to the ready Pods of the Deployment until it is dropped.
struct Client {
    tally: Arc<Tally>,
    _stop: DropGuard,
}

#[derive(Default)]
struct Tally {
    /// The addresses of ready Pods, by name.
    ready: Mutex<BTreeMap<String, String>>,
    sent: AtomicUsize,
    /// Requests that were sent to another Pod because the first one did not respond.
    repeated: AtomicUsize,
    failures: Mutex<Vec<String>>,
}

impl Client {
    /// Starts to send requests once three Pods are ready.
    fn start(gateway: &Address, port: u16) -> Self {
        let tally = Arc::new(Tally::default());
        let follower = Arc::clone(&tally);
        let stop = CancellationToken::new();
        let informer = client(gateway).informer::<Whole<Pod>>();
        let informer = informer.on_event(move |delta| {
            let mut ready = follower.ready.lock();
            match &delta.new {
                Some(new) if serves(&new.object) => {
                    let (name, ip) = (new.meta.key.name.clone(), new.object.status.pod_ip.clone());
                    ready.insert(name, ip);
                }
                _ => {
                    let gone = delta.new.as_ref().or(delta.old.as_ref());
                    gone.map(|gone| ready.remove(&gone.meta.key.name));
                }
            }
        });
        tokio::spawn(informer.run(stop.clone()));
        eventually("three Pods are ready", || {
            let ready = tally.addresses();
            (ready.len() == 3).then_some(()).ok_or(format!("{ready:?}"))
        });
        for sender in 0..SENDERS {
            let (tally, stop) = (Arc::clone(&tally), stop.clone());
            tokio::spawn(
                stop.run_until_cancelled_owned(async move { tally.send(sender, port).await }),
            );
        }
        Self {
            tally,
            _stop: stop.drop_guard(),
        }
    }

    /// Waits for enough further requests; asserts that none has failed. Returns the number of requests that were sent
    /// to a second Pod.
    fn check(&self, phase: &str) -> usize {
        let before = self.tally.sent.load(Ordering::Relaxed);
        eventually("requests are sent", || {
            let sent = self.tally.sent.load(Ordering::Relaxed) - before;
            (sent >= REQUESTS).then_some(()).ok_or(format!("{sent}"))
        });
        let failures = self.tally.failures.lock();
        assert!(failures.is_empty(), "{phase}: {failures:#?}");
        self.tally.repeated.load(Ordering::Relaxed)
    }
}

impl Tally {
    fn addresses(&self) -> Vec<String> {
        self.ready.lock().values().cloned().collect()
    }

    async fn send(&self, sender: usize, port: u16) {
        let mut ticks = interval(PAUSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for turn in sender.. {
            ticks.tick().await;
            let ready = self.addresses();
            let pod = |turn: usize| ready.get(turn % ready.len().max(1)).cloned();
            let outcome = match request(pod(turn), port).await {
                Err(_) if ready.len() > 1 => {
                    self.repeated.fetch_add(1, Ordering::Relaxed);
                    request(pod(turn + 1), port).await
                }
                outcome => outcome,
            };
            if let Err(error) = outcome {
                self.failures.lock().push(format!("{error}, of {ready:?}"));
            }
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Sends one request to a Pod.
async fn request(address: Option<String>, port: u16) -> Result<(), String> {
    let address = address.ok_or("no Pod is ready")?;
    let exchange = async {
        let mut stream = TcpStream::connect((address.as_str(), port)).await?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        let mut response = String::new();
        stream.read_to_string(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let response = timeout(Duration::from_secs(30), exchange).await;
    match response.map_err(|_| format!("{address} does not respond"))? {
        Ok(response) if response.starts_with("HTTP/1.0 200 ") => Ok(()),
        Ok(response) => Err(format!("{address} responds {response:?}")),
        Err(error) => Err(format!("{address}: {error}")),
    }
}

/// Returns whether a Pod is an endpoint that is ready.
fn serves(pod: &Pod) -> bool {
    is_ready(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Returns the Pods that are not being deleted.
fn pods(kubectl: &Kubectl) -> Vec<Value> {
    let list = kubectl.json("get pods -l app=web");
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let stays = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null();
    pods.into_iter().filter(stays).collect()
}

/// Waits until the container of a Pod was restarted and is ready.
fn until_restarted(kubectl: &Kubectl, name: &str) {
    eventually("the container was restarted", || {
        let pod = kubectl.json(&format!("get pod {name}"));
        let status = &pod["status"]["containerStatuses"][0];
        let restarted = status["restartCount"].as_u64() > Some(0) && status["ready"] == true;
        restarted.then_some(()).ok_or(status.to_string())
    });
}

fn until_settled(kubectl: &Kubectl, replicas: usize) {
    kubectl.ok("rollout status deployment/web --timeout=180s");
    eventually("the Pods have settled", || {
        let listed = kubectl.json("get pods -l app=web")["items"]
            .as_array()
            .map(Vec::len);
        (listed == Some(replicas))
            .then_some(())
            .ok_or(format!("{listed:?}"))
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_fails_through_scaling_a_rollout_and_a_killed_container() {
    let cluster = Cluster::start(Size {
        simulated_nodes: 0,
        ..Size::default()
    });
    let (kubectl, port) = (cluster.kubectl(), free_port());
    let directory = cluster.directory().to_owned();
    let created = kubectl.with("create", &manifest(port, &directory.display().to_string()));
    assert!(created.success, "{}", created.stderr);
    let client = Client::start(&cluster.gateway_url(), port);
    assert_eq!(client.check("at rest"), 0);

    for replicas in [6, 2, 4] {
        kubectl.ok(&format!("scale deployment/web --replicas={replicas}"));
        until_settled(&kubectl, replicas);
        assert_eq!(client.check("scaling"), 0);
    }

    kubectl.ok("set env deployment/web GENERATION=2");
    until_settled(&kubectl, 4);
    assert_eq!(client.check("a rollout"), 0);

    // Its readiness probe fails before its liveness probe, and it serves until its preStop hook has ended. It stays
    // sick until then, or it would be ready once more.
    let sick = text(&pods(&kubectl)[0], "/metadata/name").to_owned();
    let file = directory.join(format!("sick-{sick}"));
    std::fs::write(&file, "").expect("it is writable");
    eventually("the container has ended", || {
        let pod = kubectl.json(&format!("get pod {sick}"));
        let status = &pod["status"]["containerStatuses"][0];
        let ended = status["restartCount"].as_u64() > Some(0);
        ended.then_some(()).ok_or(status.to_string())
    });
    std::fs::remove_file(&file).expect("it exists");
    until_restarted(&kubectl, &sick);
    assert_eq!(client.check("a container killed by its liveness probe"), 0);

    // A process that is killed without a warning breaks its connections; the requests are sent to another Pod.
    let killed = pods(&kubectl).remove(1);
    let mut stream = TcpStream::connect((text(&killed, "/status/podIP"), port))
        .await
        .expect("it serves");
    stream
        .write_all(b"GET /die HTTP/1.0\r\n\r\n")
        .await
        .expect("it serves");
    until_restarted(&kubectl, text(&killed, "/metadata/name"));
    let repeated = client.check("a process killed by a signal");
    println!(
        "{} requests, {repeated} of them repeated",
        client.tally.sent.load(Ordering::Relaxed)
    );
}
