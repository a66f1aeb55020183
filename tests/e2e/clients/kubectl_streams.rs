//! kubectl's commands that connect with containers: `exec`, `attach`, `cp`, `port-forward` and `proxy`, over WebSocket
//! and over SPDY.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use super::{client, succeed};
use crate::forward::Forward;

/// The protocols: by default kubectl tries WebSocket first.
const PROTOCOLS: [&str; 2] = ["true", "false"];

/// A cluster with the Pod `web`, which serves HTTP at a port, and `talker`, which writes lines. Pods of processes have
/// no addresses of their own, so that the Service has endpoints by hand.
struct Plane {
    cluster: Cluster,
    kubectl: Kubectl,
    port: u16,
}

impl Plane {
    fn start() -> Self {
        let cluster = Cluster::start(Size {
            process_nodes: 1,
            simulated_nodes: 0,
            ..Size::default()
        });
        let kubectl = cluster.kubectl();
        let port = free_port();
        let manifest = format!(
            "apiVersion: v1
kind: Pod
metadata: {{name: web, labels: {{app: web}}}}
spec:
  containers:
  - name: main
    image: python
    command: [python3, -m, http.server, '{port}', --directory, /usr/share/common-licenses]
    ports: [{{containerPort: {port}}}]
    readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Pod
metadata: {{name: talker}}
spec:
  containers:
  - name: main
    image: sh
    command: [sh, -c, 'while true; do echo tick; sleep 0.2; done']
---
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec:
  ports: [{{name: http, port: 80, targetPort: {port}}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: {port}}}]
endpoints:
- addresses: [10.0.0.1]
  targetRef: {{kind: Pod, name: web, namespace: default}}
"
        );
        let applied = kubectl.with("apply", &manifest);
        assert!(applied.success, "{}", applied.stderr);
        kubectl.ok("wait pod/web pod/talker --for=condition=Ready --timeout=60s");
        Self {
            cluster,
            kubectl,
            port,
        }
    }
}

/// Returns a port that nothing listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

/// Returns kubectl with the arguments, and with the protocol.
fn command(kubectl: &Kubectl, websocket: &str, arguments: &[&str]) -> Command {
    let mut command = kubectl.command("");
    command
        .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websocket)
        .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", websocket)
        .args(arguments);
    command
}

/// Runs kubectl with an input. Returns the exit code, and both outputs.
fn run(
    kubectl: &Kubectl,
    websocket: &str,
    arguments: &[&str],
    input: &[u8],
) -> (i32, String, String) {
    let mut child = command(kubectl, websocket, arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl is installed");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let input = input.to_vec();
    let writing = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("kubectl ends");
    // A command that does not read its input closes the pipe.
    let _ = writing.join().expect("the input is written");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn kubectl_runs_commands_copies_files_and_forwards_ports() {
    let plane = Plane::start();
    for websocket in PROTOCOLS {
        commands_have_input_output_and_exit_codes(&plane.kubectl, websocket);
        files_are_copied(&plane, websocket);
        a_port_is_forwarded(&plane, websocket);
        a_process_is_attached_to(&plane.kubectl, websocket);
    }
    requests_are_passed_on(&plane);
    what_does_not_exist_is_an_error(&plane.kubectl);
    python_runs_commands(&plane);
}

fn commands_have_input_output_and_exit_codes(kubectl: &Kubectl, websocket: &str) {
    let exec = |arguments: &[&str], input: &[u8]| {
        let arguments = [&["exec", "web"], arguments].concat();
        run(kubectl, websocket, &arguments, input)
    };
    assert_eq!(
        exec(&["--", "echo", "hello world"], b""),
        (0, "hello world\n".into(), String::new())
    );
    let (code, stdout, stderr) = exec(&["--", "sh", "-c", "echo out; echo err >&2; exit 3"], b"");
    assert_eq!((code, stdout.as_str()), (3, "out\n"), "{stderr}");
    assert!(
        stderr.contains("err\n") && stderr.contains("exit code 3"),
        "{stderr}"
    );
    let (code, stdout, stderr) = exec(&["-i", "--", "cat"], b"one\ntwo\n");
    assert_eq!((code, stdout.as_str()), (0, "one\ntwo\n"), "{stderr}");
    // More than all buffers together.
    let large = vec![b'x'; 3 << 20];
    let (code, stdout, stderr) = exec(&["-i", "--", "wc", "-c"], &large);
    assert_eq!((code, stdout.trim()), (0, "3145728"), "{stderr}");
    let (code, stdout, stderr) = exec(&["--", "head", "-c", "3000000", "/dev/zero"], b"");
    assert_eq!((code, stdout.len()), (0, 3_000_000), "{stderr}");
}

fn files_are_copied(plane: &Plane, websocket: &str) {
    let folder = plane.cluster.directory();
    let (sent, back) = (folder.join("sent"), folder.join("back"));
    let there = folder.join(format!("there-{websocket}"));
    std::fs::write(&sent, "copied").expect("it is writable");
    let remote = format!("web:{}", there.display());
    let copy = |from: &str, to: &str| {
        let (code, _, stderr) = run(&plane.kubectl, websocket, &["cp", from, to], b"");
        assert_eq!(code, 0, "{stderr}");
    };
    copy(&sent.display().to_string(), &remote);
    copy(&remote, &back.display().to_string());
    assert_eq!(
        std::fs::read_to_string(&back).expect("it was copied"),
        "copied"
    );
    std::fs::remove_file(&back).expect("it exists");
}

/// A process that is killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn a_port_is_forwarded(plane: &Plane, websocket: &str) {
    let remote = format!(":{}", plane.port);
    let arguments = ["port-forward", "pod/web", &remote];
    let forward = Forward::start(&mut command(&plane.kubectl, websocket, &arguments));
    for _ in 0..3 {
        let response = forward.get("/GPL-3");
        assert!(response.starts_with("HTTP/1.0 200 OK"), "{response}");
        assert!(
            response.contains("GNU GENERAL PUBLIC LICENSE"),
            "{response}"
        );
    }
}

/// Processes have no stdin to attach to.
fn a_process_is_attached_to(kubectl: &Kubectl, websocket: &str) {
    let mut child = command(kubectl, websocket, &["attach", "talker"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("kubectl is installed");
    let stdout = child.stdout.take().expect("it is a pipe");
    let _running = Running(child);
    let mut lines = BufReader::new(stdout).lines();
    let line = lines.next().expect("there is output").expect("it is read");
    assert_eq!(line, "tick");
}

fn requests_are_passed_on(plane: &Plane) {
    let namespace = "/api/v1/namespaces/default";
    for target in [
        format!("pods/web:{}", plane.port),
        "pods/web".to_owned(),
        "services/web:http".to_owned(),
        "services/http:web:80".to_owned(),
    ] {
        let path = format!("get --raw {namespace}/{target}/proxy/GPL-3");
        eventually("the Pod answers", || {
            let output = plane.kubectl.run(&path);
            match output.stdout.contains("GNU GENERAL PUBLIC LICENSE") {
                true => Ok(()),
                false => Err(output.stderr),
            }
        });
    }
    let node = plane.kubectl.ok("get pod web -o jsonpath={.spec.nodeName}");
    let metrics = plane
        .kubectl
        .ok(&format!("get --raw /api/v1/nodes/{node}/proxy/metrics"));
    assert!(metrics.contains("# HELP"), "{metrics}");
}

fn what_does_not_exist_is_an_error(kubectl: &Kubectl) {
    for (arguments, error) in [
        ("exec none -- true", "pods \"none\" not found"),
        (
            "exec web -c none -- true",
            "container none is not valid for pod web",
        ),
        ("attach none", "pods \"none\" not found"),
        ("port-forward pod/none :80", "pods \"none\" not found"),
    ] {
        let refused = kubectl.fails(arguments);
        assert!(refused.contains(error), "{arguments}: {refused}");
    }
}

/// The Python client, as its users write it: `streams.py`.
fn python_runs_commands(plane: &Plane) {
    let Some(python) = client("python") else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/clients/streams.py");
    let mut command = Command::new(python);
    command.arg(script).arg(plane.port.to_string());
    let output = succeed(&mut command, plane.cluster.directory());
    assert!(output.ends_with("done\n"), "{output}");
}
