//! Tests of the export of spans by a process.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::process::{Command, Output, Stdio};

use axum::Router;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use setpoint_host::serve;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

struct Collector(mpsc::Sender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send(request.into_inner()).await.unwrap();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

async fn collector() -> (String, mpsc::Receiver<ExportTraceServiceRequest>) {
    let (sender, receiver) = mpsc::channel(16);
    let service = TraceServiceServer::new(Collector(sender));
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/{method}";
    let listener = serve::bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route_service(path, service);
    tokio::spawn(serve::serve(
        listener,
        router,
        serve::Limits::default(),
        CancellationToken::new(),
    ));
    (endpoint, receiver)
}

/// Runs the example until it has done its work and stops it; returns its log.
async fn run_example(env: &[(&str, &str)]) -> Vec<serde_json::Value> {
    let tests = std::env::current_exe().unwrap();
    let mut command = Command::new(tests.ancestors().nth(2).unwrap().join("examples/echo"));
    command
        .env("SETPOINT__TLS__PLAINTEXT", "true")
        .envs(env.iter().copied())
        .stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut log = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["message"] == "worked" {
            let pid = child.id().unwrap().try_into().unwrap();
            kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
        }
        log.push(line);
    }
    let Output { status, .. } = child.wait_with_output().await.unwrap();
    assert!(status.success());
    log
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn spans_are_exported_at_exit_and_log_lines_have_their_ids() {
    let (endpoint, mut collected) = collector().await;
    let env = [
        ("SETPOINT__INSTANCE", "echo-0"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        ),
        // Only the flush at the exit exports the spans.
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
    ];
    let log = run_example(&env).await;
    let request = collected.recv().await.unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let attributes = format!("{:?}", resource.attributes);
    for word in [
        "echo",
        "echo-0",
        "service.version",
        "deployment.environment.name",
    ] {
        assert!(attributes.contains(word), "{attributes}");
    }
    let spans = &request.resource_spans[0].scope_spans[0].spans;
    for (name, message) in [("act", "acted"), ("work", "worked")] {
        let span = spans.iter().find(|span| span.name == name).unwrap();
        let line = log.iter().find(|line| line["message"] == message).unwrap();
        assert_eq!(line["trace_id"], hex(&span.trace_id));
        assert_eq!(line["span_id"], hex(&span.span_id));
    }
}

#[tokio::test]
async fn a_sampler_that_is_always_off_exports_nothing() {
    let (endpoint, mut collected) = collector().await;
    run_example(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ])
    .await;
    assert!(collected.try_recv().is_err());
}
