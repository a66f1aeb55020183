//! The streams of the service over gRPC.

use std::net::Ipv4Addr;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use setpoint_proto::setpoint::container_input::Input;
use setpoint_proto::setpoint::container_output::Output;
use setpoint_proto::setpoint::node_client::NodeClient;
use setpoint_proto::setpoint::node_server::{Node, NodeServer};
use setpoint_proto::setpoint::port_forward_input::Input as PortInput;
use setpoint_proto::setpoint::port_forward_output::Output as PortOutput;
use setpoint_proto::setpoint::{
    ContainerInput, Exit, HalfClose, LogsPiece, LogsRequest, OpenContainer, OpenPort, Opened,
    PortForwardInput, UsageRequest, UsageResponse,
};
use setpoint_runtime::Runtime as _;
use setpoint_runtime::streams::dial;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};

use super::idle::Idle;
use super::{port_forward, streams, to_api_error};
use crate::pod::fake::{Fake, id};

const TIMEOUT: Duration = Duration::from_secs(60);

/// A service that runs commands in one container, and connects to ports of this machine.
struct Direct {
    runtime: Fake,
    shutdown: CancellationToken,
}

#[tonic::async_trait]
impl Node for Direct {
    type LogsStream = BoxStream<'static, Result<LogsPiece, Status>>;
    type ExecStream = streams::Responses;
    type AttachStream = streams::Responses;
    type PortForwardStream = port_forward::Responses;

    async fn logs(&self, _: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        Err(Status::unimplemented("logs"))
    }

    async fn usage(&self, _: Request<UsageRequest>) -> Result<Response<UsageResponse>, Status> {
        Err(Status::unimplemented("usage"))
    }

    async fn exec(
        &self,
        request: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        let (open, input) = streams::open(request.into_inner()).await?;
        let streams = streams::streams(&open);
        let output = self
            .runtime
            .exec(&id(), &open.command, streams, input)
            .await;
        let output = output.map_err(to_api_error)?;
        Ok(Response::new(streams::responses(output, &self.shutdown)))
    }

    async fn attach(
        &self,
        _: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        Err(Status::unimplemented("attach"))
    }

    async fn port_forward(
        &self,
        request: Request<Streaming<PortForwardInput>>,
    ) -> Result<Response<Self::PortForwardStream>, Status> {
        let mut requests = request.into_inner();
        let (_, port) = port_forward::open(&mut requests).await?;
        let connection = dial((Ipv4Addr::LOCALHOST, port).into()).await;
        let connection = connection.map_err(to_api_error)?;
        Ok(Response::new(port_forward::forward(
            connection,
            requests,
            Idle::new(Duration::ZERO),
        )))
    }
}

struct Fixture {
    runtime: Fake,
    shutdown: CancellationToken,
    client: NodeClient<Channel>,
    _server: AbortOnDropHandle<()>,
}

impl Fixture {
    async fn new() -> Self {
        let (runtime, shutdown) = (Fake::new(), CancellationToken::new());
        let service = NodeServer::new(Direct {
            runtime: runtime.clone(),
            shutdown: shutdown.clone(),
        });
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap();
        let server = async move {
            let server = Server::builder().add_service(service);
            server.serve_with_incoming(incoming).await.unwrap();
        };
        let server = AbortOnDropHandle::new(tokio::spawn(server));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let client = NodeClient::new(endpoint.connect().await.unwrap());
        Self {
            runtime,
            shutdown,
            client,
            _server: server,
        }
    }

    /// Runs a command; returns its responses.
    async fn exec(&self, first: Input) -> Result<Vec<Output>, Status> {
        let input = Some(first);
        let requests = futures::stream::iter([ContainerInput { input }]);
        let responses = self.client.clone().exec(requests).await?.into_inner();
        let mut outputs = Vec::new();
        let mut responses = responses;
        while let Some(response) = timeout(TIMEOUT, responses.message()).await.unwrap()? {
            outputs.extend(response.output);
        }
        Ok(outputs)
    }
}

fn open() -> OpenContainer {
    OpenContainer {
        command: vec!["date".into()],
        stdout: true,
        ..OpenContainer::default()
    }
}

#[tokio::test]
async fn a_command_is_opened_then_answers_and_exits() {
    let fixture = Fixture::new().await;
    fixture.runtime.answer("today", 3);
    let outputs = fixture.exec(Input::Open(open())).await.unwrap();
    let expected = [
        Output::Opened(Opened {}),
        Output::Stdout("today".into()),
        Output::Exit(Exit { code: 3 }),
    ];
    assert_eq!(outputs, expected);
}

#[tokio::test]
async fn a_call_that_does_not_begin_with_open_is_refused() {
    let fixture = Fixture::new().await;
    let refused = fixture.exec(Input::Stdin("x".into())).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let both = OpenContainer {
        tty: true,
        stderr: true,
        ..open()
    };
    let neither = OpenContainer {
        stdout: false,
        ..open()
    };
    for wrong in [both, neither] {
        let refused = fixture.exec(Input::Open(wrong)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    assert_eq!(fixture.runtime.commands(), 0);
}

#[tokio::test]
async fn a_command_ends_with_an_error_when_the_agent_shuts_down() {
    let fixture = Fixture::new().await;
    fixture.runtime.hang();
    let shutdown = fixture.shutdown.clone();
    let stop = async {
        while fixture.runtime.commands() == 0 {
            tokio::task::yield_now().await;
        }
        shutdown.cancel();
    };
    let (ended, ()) = tokio::join!(fixture.exec(Input::Open(open())), stop);
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
}

/// Begins to forward a port; returns the sender of requests and the responses, which have been opened.
async fn forward(
    fixture: &Fixture,
    port: u16,
) -> (
    mpsc::Sender<PortForwardInput>,
    Streaming<setpoint_proto::setpoint::PortForwardOutput>,
) {
    let (sender, receiver) = mpsc::channel(4);
    let next = |mut receiver: mpsc::Receiver<_>| async move {
        let item = receiver.recv().await?;
        Some((item, receiver))
    };
    let requests = futures::stream::unfold(receiver, next);
    let open = OpenPort {
        port: port.into(),
        ..OpenPort::default()
    };
    sender.send(input(PortInput::Open(open))).await.unwrap();
    let responses = fixture.client.clone().port_forward(requests).await.unwrap();
    let mut responses = responses.into_inner();
    let first = responses.message().await.unwrap().unwrap().output;
    assert_eq!(first, Some(PortOutput::Opened(Opened {})));
    (sender, responses)
}

fn input(input: PortInput) -> PortForwardInput {
    let input = Some(input);
    PortForwardInput { input }
}

#[tokio::test]
async fn a_forwarded_connection_is_closed_by_halves() {
    let fixture = Fixture::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        stream.read_to_string(&mut request).await.unwrap();
        // The client has ended its half, and still receives.
        stream
            .write_all(format!("got {request}").as_bytes())
            .await
            .unwrap();
    };
    let client = async {
        let (sender, responses) = forward(&fixture, port).await;
        sender
            .send(input(PortInput::Data("hello".into())))
            .await
            .unwrap();
        sender
            .send(input(PortInput::End(HalfClose {})))
            .await
            .unwrap();
        let rest = responses.map(|response| response.unwrap().output.unwrap());
        rest.collect::<Vec<_>>().await
    };
    let (rest, ()) = timeout(TIMEOUT, async { tokio::join!(client, server) })
        .await
        .unwrap();
    let (last, data) = rest.split_last().unwrap();
    assert_eq!(*last, PortOutput::End(HalfClose {}));
    let data = data.iter().map(|output| match output {
        PortOutput::Data(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    });
    assert_eq!(data.collect::<String>(), "got hello");
}

#[tokio::test]
async fn a_client_that_leaves_closes_the_connection() {
    let fixture = Fixture::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, responses) = forward(&fixture, port).await;
    let (mut stream, _) = listener.accept().await.unwrap();
    drop((sender, responses));
    let mut rest = Vec::new();
    let closed = timeout(TIMEOUT, stream.read_to_end(&mut rest))
        .await
        .unwrap();
    // Whether as an end or a reset.
    assert!(closed.is_err() || rest.is_empty());
}

#[tokio::test]
async fn a_port_that_refuses_is_an_error_before_the_connection_is_opened() {
    let fixture = Fixture::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for (port, code) in [
        (u32::from(port), Code::Unavailable),
        (70_000, Code::InvalidArgument),
    ] {
        let open = OpenPort {
            port,
            ..OpenPort::default()
        };
        let requests = futures::stream::iter([input(PortInput::Open(open))]);
        let refused = fixture
            .client
            .clone()
            .port_forward(requests)
            .await
            .unwrap_err();
        assert_eq!(refused.code(), code);
    }
}
