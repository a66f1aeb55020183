//! Handlers against real servers.

use std::time::Duration;

use setpoint_proto::core::{
    Container, ContainerPort, ExecAction, GrpcAction, HttpGetAction, LifecycleHandler,
    ProbeHandler, TcpSocketAction,
};
use setpoint_proto::meta::IntOrString;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::Outcome;
use crate::pod::fake::Fake;

const LIMIT: Duration = Duration::from_secs(30);

fn number(port: u16) -> IntOrString {
    IntOrString {
        int_val: port.into(),
        ..IntOrString::default()
    }
}

/// Serves HTTP/1.1: the answer of each request is in its path, as the status and perhaps a location.
async fn serve() -> (u16, AbortOnDropHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that speaks TLS is told nothing.
            let _ = answer(stream).await;
        }
    };
    (port, AbortOnDropHandle::new(tokio::spawn(serve)))
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut path = request
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .splitn(3, '/')
        .skip(1);
    let status = path.next().unwrap_or_default();
    let location = path.next().map(|to| format!("Location: {to}\r\n"));
    let head = location.unwrap_or_default();
    let answer = format!("HTTP/1.1 {status} Said\r\n{head}Content-Length: 4\r\n\r\nbody");
    stream.write_all(answer.as_bytes()).await
}

async fn probe(handler: ProbeHandler) -> Result<Outcome, String> {
    let container = Container {
        name: "web".into(),
        ports: vec![ContainerPort {
            name: "named".into(),
            container_port: 1,
            ..ContainerPort::default()
        }],
        ..Container::default()
    };
    Fake::new().target(container).probe(&handler, LIMIT).await
}

fn http(port: u16, path: &str) -> ProbeHandler {
    ProbeHandler {
        http_get: Some(HttpGetAction {
            port: number(port),
            path: path.into(),
            ..HttpGetAction::default()
        }),
        ..ProbeHandler::default()
    }
}

/// Checks N7.
#[tokio::test]
async fn an_http_probe_judges_the_status_and_follows_redirects_to_the_same_host() {
    let (port, _server) = serve().await;
    assert_eq!(probe(http(port, "200")).await, Ok(Outcome::Success));
    assert_eq!(probe(http(port, "/302//204")).await, Ok(Outcome::Success));
    let away = probe(http(port, "/302/http://elsewhere.invalid/")).await;
    let remark = "Probe terminated redirects, Response body: body".to_owned();
    assert_eq!(away, Ok(Outcome::Warning(remark)));
    let failed = "HTTP probe failed with statuscode: 503".to_owned();
    assert_eq!(
        probe(http(port, "/503")).await,
        Ok(Outcome::Failure(failed))
    );
    let round = probe(http(port, "/302//302")).await.unwrap();
    assert!(
        matches!(round, Outcome::Warning(_)),
        "a redirect to nowhere: {round:?}"
    );
}

/// Checks N7.
#[tokio::test]
async fn a_probe_of_a_port_fails_in_the_words_of_the_kubelet() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let tcp = |port: IntOrString| ProbeHandler {
        tcp_socket: Some(TcpSocketAction {
            port,
            ..TcpSocketAction::default()
        }),
        ..ProbeHandler::default()
    };
    assert_eq!(probe(tcp(number(port))).await, Ok(Outcome::Success));
    drop(listener);
    let refused = format!("dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(
        probe(tcp(number(port))).await,
        Ok(Outcome::Failure(refused.clone()))
    );
    let get = format!("Get \"http://127.0.0.1:{port}/\": {refused}");
    assert_eq!(probe(http(port, "")).await, Ok(Outcome::Failure(get)));
    let named = |name: &str| IntOrString {
        r#type: 1,
        str_val: name.into(),
        ..IntOrString::default()
    };
    assert!(matches!(
        probe(tcp(named("named"))).await,
        Ok(Outcome::Failure(_))
    ));
    assert!(probe(tcp(named("other"))).await.is_err());
}

/// Checks N7.
#[tokio::test]
async fn a_grpc_probe_asks_the_health_service() {
    let (reporter, service) = tonic_health::server::health_reporter();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = incoming.local_addr().unwrap().port();
    let serve = Server::builder()
        .add_service(service)
        .serve_with_incoming(incoming);
    let _server = AbortOnDropHandle::new(tokio::spawn(serve));
    let grpc = |service: &str| ProbeHandler {
        grpc: Some(GrpcAction {
            port: port.into(),
            service: Some(service.into()),
            ..GrpcAction::default()
        }),
        ..ProbeHandler::default()
    };
    assert_eq!(probe(grpc("")).await, Ok(Outcome::Success));
    reporter
        .set_service_status("shop", tonic_health::ServingStatus::NotServing)
        .await;
    let unhealthy = "service unhealthy (responded with \"NOT_SERVING\")".to_owned();
    assert_eq!(probe(grpc("shop")).await, Ok(Outcome::Failure(unhealthy)));
    let unknown = probe(grpc("other")).await.unwrap();
    assert!(
        matches!(&unknown, Outcome::Failure(why) if why.starts_with("error: health rpc probe failed")),
        "{unknown:?}"
    );
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn a_command_fails_by_its_exit_code_or_when_it_takes_too_long() {
    let runtime = Fake::new();
    let target = runtime.target(Container::default());
    let handler = ProbeHandler {
        exec: Some(ExecAction {
            command: vec!["check".into(), "all".into()],
        }),
        ..ProbeHandler::default()
    };
    let limit = Duration::from_secs(1);
    assert_eq!(target.probe(&handler, limit).await, Ok(Outcome::Success));
    runtime.answer("broken", 2);
    let failed = Outcome::Failure("broken".into());
    assert_eq!(target.probe(&handler, limit).await, Ok(failed));
    runtime.answer("exec: \"check\": executable file not found in $PATH", 127);
    assert!(
        target.probe(&handler, limit).await.is_err(),
        "it says nothing about the container"
    );
    runtime.hang();
    let late = "command timed out: \"check all\" timed out after 1s".to_owned();
    assert_eq!(
        target.probe(&handler, limit).await,
        Ok(Outcome::Failure(late))
    );
}

#[tokio::test]
async fn a_hook_succeeds_whatever_the_status_of_the_answer() {
    let (port, server) = serve().await;
    let handler = |scheme: &str| LifecycleHandler {
        http_get: Some(HttpGetAction {
            port: number(port),
            path: "/404".into(),
            scheme: scheme.into(),
            ..HttpGetAction::default()
        }),
        ..LifecycleHandler::default()
    };
    let target = Fake::new().target(Container::default());
    assert_eq!(target.run_hook(&handler("HTTP")).await, Ok(()));
    assert_eq!(
        target.run_hook(&handler("HTTPS")).await,
        Ok(()),
        "it falls back to HTTP"
    );
    drop(server);
    let nothing = LifecycleHandler::default();
    assert_eq!(
        target.run_hook(&nothing).await,
        Err("invalid handler".into())
    );
}
