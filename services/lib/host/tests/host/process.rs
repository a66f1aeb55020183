//! Tests of a process: exit codes, signals, health, the log filter.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::Request;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use setpoint_host::http_client::{self, Answer};
use setpoint_host::unverified_tls;
use setpoint_tls::authority::{Authority, Leaf, Usage, write_certificates};
use setpoint_tls::{Credentials, Files};
use tokio::runtime::Runtime;

/// Returns the example, which Cargo builds with the tests.
fn echo() -> Command {
    let tests = std::env::current_exe().unwrap();
    let mut command = Command::new(tests.ancestors().nth(2).unwrap().join("examples/echo"));
    command
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .env("SETPOINT__TLS__PLAINTEXT", "true")
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Checks E11: `<service> --help | head`.
#[test]
fn a_reader_that_leaves_before_the_end_of_the_help_is_no_failure() {
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    let output = echo().arg("--help").stdout(closed).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

struct Process {
    child: Child,
    address: SocketAddr,
    log: BufReader<std::process::ChildStderr>,
}

impl Process {
    fn start(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = echo()
            .args(args)
            .envs(env.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        log.read_line(&mut line).unwrap();
        let started: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(started["message"], "started");
        Self {
            child,
            address: started["address"].as_str().unwrap().parse().unwrap(),
            log,
        }
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    fn ask(&self, method: &str, path: &str, body: &'static str) -> Answer {
        let url = format!("http://{}{path}", self.address);
        let request = Request::builder().method(method).uri(url);
        let request = request.body(Body::from(body)).unwrap();
        let runtime = Runtime::new().unwrap();
        runtime
            .block_on(http_client::send(request, 1 << 20))
            .unwrap()
    }

    /// Returns the next line of the log.
    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.log.read_line(&mut line).unwrap();
        assert!(read > 0, "the log has ended");
        line
    }

    fn wait_until_ready(&self) {
        self.wait_for_report(|report| report.status == 200);
    }

    /// Waits until `holds` returns true for the readiness report.
    fn wait_for_report(&self, holds: impl Fn(&Answer) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let report = self.ask("GET", "/readyz", "");
            if holds(&report) {
                return;
            }
            assert!(Instant::now() < deadline, "still {report:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end; returns the rest of the log and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn finished(args: &[&str]) -> (Output, String) {
    let output = echo().args(args).output().unwrap();
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    (output, text)
}

#[test]
fn invalid_settings_print_one_line_and_exit_with_64() {
    for args in [
        ["--drain", "soon"],
        ["--log", "setpoint=loud"],
        ["--nothing", "x"],
    ] {
        let (output, text) = finished(&args);
        assert_eq!(output.status.code(), Some(64), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("echo: "), "{text}");
    }
}

#[test]
fn a_failure_is_logged_and_exits_with_1() {
    let (output, text) = finished(&["--fail=true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("told to fail"), "{text}");
}

#[test]
fn a_port_in_use_is_logged_and_exits_with_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (output, text) = finished(&["--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains(&format!(
            "cannot listen on {address}: Address already in use"
        )),
        "{text}"
    );
}

#[test]
fn sigterm_stops_a_process_with_exit_code_0() {
    let process = Process::start(&[], &[]);
    process.wait_until_ready();
    let report = process.ask("GET", "/readyz?verbose", "").body;
    assert!(
        report.ends_with("[+]echo ok\nreadyz check passed\n"),
        "{report}"
    );
    process.signal(Signal::SIGTERM);
    let (log, code) = process.end();
    assert_eq!(code, Some(0));
    assert!(
        log.trim_end().ends_with('}') && log.contains("\"stopped\""),
        "{log}"
    );
}

#[test]
fn the_health_command_queries_the_process_of_the_same_settings() {
    let mut health = echo();
    let process = Process::start(&[], &[]);
    process.wait_until_ready();
    health
        .arg("health")
        .env("SETPOINT__LISTEN", process.address.to_string());
    let output = health.output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stdout, b"echo is ready\n");

    drop(process);
    let output = health.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.starts_with("echo does not listen on 127.0.0.1:"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn the_health_command_prints_the_failed_check() {
    let process = Process::start(&["--ready=false"], &[]);
    // The process listens before it adds its check.
    process.wait_for_report(|report| report.body.contains("[-]echo failed"));
    let mut health = echo();
    health.args(["health", "--listen", &process.address.to_string()]);
    let output = health.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"echo is not ready: echo: starting\n");
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let mut process = Process::start(&["--hang=true", "--drain", "1h"], &[]);
    process.signal(Signal::SIGTERM);
    while !process.line().contains("stopping") {}
    process.signal(Signal::SIGINT);
    assert_eq!(process.end().1, Some(130));
}

#[test]
fn the_log_filter_can_be_changed_at_run_time() {
    let process = Process::start(&["--log=info"], &[]);
    assert!(
        process
            .ask("GET", "/debug/flags/log", "")
            .body
            .ends_with("info\n")
    );
    assert!(
        process
            .ask("PUT", "/debug/flags/log", "debug")
            .body
            .contains("successfully set log to debug")
    );
    let refused = process.ask("PUT", "/debug/flags/log", "a=loud");
    assert_eq!(refused.status, 400);
    assert!(
        process
            .ask("GET", "/debug/flags/log", "")
            .body
            .ends_with("debug\n")
    );
}

#[test]
fn an_unreachable_collector_delays_no_exit_and_is_logged_once() {
    let process = Process::start(
        &[],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ],
    );
    assert!(process.ask("GET", "/livez", "").body.ends_with("ok"));
    let stop = Instant::now();
    process.signal(Signal::SIGTERM);
    let (log, code) = process.end();
    assert_eq!(code, Some(0));
    assert!(stop.elapsed() < Duration::from_secs(5));
    assert!(
        log.matches("spans cannot be exported").count() <= 1,
        "{log}"
    );
}

/// Returns the flags of an identity whose files are in a directory.
fn identity(directory: &Path) -> Vec<String> {
    let leaf = Leaf {
        name: "echo".to_owned(),
        groups: vec!["system:monitoring".to_owned()],
        hosts: vec!["127.0.0.1".to_owned()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3_600),
    };
    let files = Files::in_directory(directory);
    let issued = Authority::create("ca").unwrap().issue(&leaf).unwrap();
    issued.write(&files).unwrap();
    write_certificates(&files.ca_file, &[&issued.ca]).unwrap();
    let flag = |name: &str, file: &Path| format!("--tls-{name}-file={}", file.display());
    vec![
        flag("ca", &files.ca_file),
        flag("certificate", &files.certificate_file),
        flag("key", &files.key_file),
        "--tls-plaintext=false".to_owned(),
    ]
}

#[test]
fn a_process_with_an_identity_speaks_tls_and_its_health_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let flags = identity(directory.path());
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let process = Process::start(&flags, &[]);
    let refused = process.ask("GET", "/readyz", "");
    assert_eq!(refused.status, 400);
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut health = echo();
    health
        .arg("health")
        .args(&flags)
        .args(["--listen", &process.address.to_string()]);
    loop {
        let output = health.output().unwrap();
        if output.status.success() {
            assert_eq!(output.stdout, b"echo is ready\n");
            break;
        }
        assert!(Instant::now() < deadline, "{output:?}");
    }
    let runtime = Runtime::new().unwrap();
    let anonymous = runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(process.address)
            .await
            .unwrap();
        let stream = unverified_tls::connect("127.0.0.1", stream).await.unwrap();
        let request = Request::get("/metrics").header("host", "localhost");
        let request = request.body(Body::empty()).unwrap();
        http_client::send_on(stream, request, 1 << 20)
            .await
            .unwrap()
    });
    assert_eq!(anonymous.status, 403, "{}", anonymous.body);
    let metrics = runtime.block_on(async {
        let credentials = Credentials::load(&Files::in_directory(directory.path())).unwrap();
        let request = Request::get(format!("https://{}/metrics", process.address));
        let request = request.body(Body::empty()).unwrap();
        let answer = http_client::send_as(Some(&credentials), request, 1 << 20).await;
        answer.unwrap().body
    });
    let mut lines = metrics.lines();
    let left = lines.find_map(|line| {
        line.strip_prefix("setpoint_tls_certificate_ttl_seconds{certificate=\"tls\"} ")
    });
    let left: f64 = left.expect("the metric is there").parse().unwrap();
    assert!((3_500.0..=3_600.0).contains(&left), "{left}");
}

#[test]
fn a_process_without_an_identity_must_be_told_so() {
    let (output, text) = finished(&["--tls-plaintext=false"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(
        text.starts_with("echo: invalid settings: tls.ca_file"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");

    let directory = tempfile::tempdir().unwrap();
    let flags = identity(directory.path());
    std::fs::remove_file(directory.path().join("tls.key")).unwrap();
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let (output, text) = finished(&flags);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.contains("cannot read") && text.contains("tls.key"),
        "{text}"
    );

    let (output, text) = finished(&["--listen=0.0.0.0:0"]);
    assert_eq!(output.status.code(), Some(64));
    let why = "echo: invalid settings: with tls.plaintext, listen must be a loopback address";
    assert!(text.starts_with(why), "{text}");

    let mut plain = Process::start(&[], &[]);
    assert!(plain.line().contains("listening without TLS"));
}
