//! Certificates are renewed while everything runs: no stream breaks, and each handshake has the newest one.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use setpoint_tests::{Address, Cluster, EtcdLog, Kubectl, LeadershipTerm, Size, free_port};
use setpoint_tls::{Files, PeerIdentity};
use tokio::runtime::Runtime;

use crate::node_pressure::{has_phase, until};
use crate::web::text;
use crate::workloads::create;

/// The life of the certificates with which the streams begin.
const FIRST: Duration = Duration::from_secs(20);
const RENEWALS: usize = 100;
const LEADERS: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
];

/// A watch, an exec, a port-forward and the streams of leaders outlive the certificates that they began with.
#[test]
fn a_hundred_renewals_break_no_stream_of_a_cluster() {
    let cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let (kubectl, port) = (cluster.kubectl(), free_port());
    create(&kubectl, &echo(port));
    until(&kubectl, "echo", has_phase("Running"));
    let history = EtcdLog::of(&cluster.etcd_url());
    let pki = cluster.pki();
    let servers = [
        (cluster.gateway_url(), pki.files("gateway-0")),
        (agent(&cluster, &kubectl), pki.files("node-agent-0")),
    ];
    let runtime = Runtime::new().expect("a runtime");
    pki.reissue(Some(FIRST)).expect("they are issued");
    let begin = Instant::now();
    for (address, files) in &servers {
        runtime.block_on(until_shown(address, files));
    }
    let mut streams = Streams::open(&kubectl, port);
    let mut seen = 0;
    for n in 0..RENEWALS {
        pki.reissue(None).expect("they are issued");
        for (address, files) in &servers {
            runtime.block_on(until_shown(address, files));
            seen += 1;
        }
        if n % 10 == 0 {
            streams.go_on(&kubectl, &format!("n-{n}"));
        }
    }
    assert_eq!(seen, 2 * RENEWALS, "handshakes with each new certificate");
    let left = FIRST.saturating_sub(begin.elapsed());
    std::thread::sleep(left);
    streams.go_on(&kubectl, "last");
    let history = history.all();
    for service in LEADERS {
        let terms = LeadershipTerm::all(&history, service);
        assert!(terms.len() <= 1, "{service} led without a break: {terms:?}");
    }
}

/// Connects to a server until it shows the certificate of these files; a process looks at its files once a second.
async fn until_shown(address: &Address, files: &Files) {
    let text = std::fs::read(&files.certificate_file).expect("it was written");
    let wanted = PeerIdentity::of_pem(&text).expect("it names a user");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let shown = address.connect().await.ok();
        let shown = shown.and_then(|stream| stream.server().ok().flatten());
        if shown.as_ref() == Some(&wanted) {
            return;
        }
        assert!(Instant::now() < deadline, "{address}: {shown:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the address of the agent.
fn agent(cluster: &Cluster, kubectl: &Kubectl) -> Address {
    let node = kubectl.json("get node node-0");
    let ip = text(&node, "/status/addresses/0/address").to_owned();
    let port = &node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"];
    cluster.process_at(&format!("{ip}:{port}"))
}

/// Returns a Pod that sends back what it gets at a port.
fn echo(port: u16) -> String {
    format!(
        r#"
apiVersion: v1
kind: Pod
metadata: {{name: echo}}
spec:
  containers:
  - name: main
    image: none
    command:
    - python3
    - -c
    - "import socket\ns = socket.create_server(('', {port}))\nwhile True:\n  c, _ = s.accept()\n  while d := c.recv(99): c.sendall(d)"
"#
    )
}

/// A child that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The streams that stay open.
struct Streams {
    watch: BufReader<ChildStdout>,
    exec: (ChildStdin, BufReader<ChildStdout>),
    forwarded: TcpStream,
    _forward: BufReader<ChildStdout>,
    _children: [Running; 3],
}

impl Streams {
    fn open(kubectl: &Kubectl, port: u16) -> Self {
        let start = |arguments: &str| {
            let mut command = kubectl.command(arguments);
            let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("kubectl is installed");
            let stdin = child.stdin.take().expect("it is a pipe");
            let stdout = BufReader::new(child.stdout.take().expect("it is a pipe"));
            (Running(child), stdin, stdout)
        };
        let (watching, _, watch) = start("get configmaps --watch --no-headers -o name");
        let (executing, stdin, stdout) = start("exec -i echo -- cat");
        let (forwarding, _, mut forward) = start(&format!("port-forward pod/echo :{port}"));
        let mut line = String::new();
        forward.read_line(&mut line).expect("kubectl writes");
        let local = line.split(" -> ").next();
        let local = local.and_then(|from| from.rsplit(':').next());
        let local: u16 = local.and_then(|port| port.parse().ok()).expect(&line);
        Self {
            watch,
            exec: (stdin, stdout),
            forwarded: TcpStream::connect(("127.0.0.1", local)).expect("kubectl listens"),
            _forward: forward,
            _children: [watching, executing, forwarding],
        }
    }

    /// Checks that all of them carry what is new.
    fn go_on(&mut self, kubectl: &Kubectl, mark: &str) {
        kubectl.ok(&format!("create configmap {mark}"));
        let (mut line, wanted) = (String::new(), format!("configmap/{mark}\n"));
        while line != wanted {
            line.clear();
            let read = self.watch.read_line(&mut line).expect("the watch goes on");
            assert!(read > 0, "the watch has ended before {mark}");
        }
        let (stdin, stdout) = &mut self.exec;
        writeln!(stdin, "{mark}").expect("the exec goes on");
        line.clear();
        stdout.read_line(&mut line).expect("the exec goes on");
        assert_eq!(line, format!("{mark}\n"));
        let sent = mark.as_bytes();
        self.forwarded.write_all(sent).expect("it goes on");
        let mut back = vec![0; sent.len()];
        self.forwarded.read_exact(&mut back).expect("it goes on");
        assert_eq!(back, sent);
    }
}
