//! An agent whose containers do what their commands say.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use setpoint_host::gateways_only;
use setpoint_host::serve::{Limits, bind, serve_with};
use setpoint_proto::setpoint::container_input::Input;
use setpoint_proto::setpoint::container_output::Output;
use setpoint_proto::setpoint::node_server::{Node, NodeServer};
use setpoint_proto::setpoint::port_forward_input::Input as PortInput;
use setpoint_proto::setpoint::port_forward_output::Output as PortOutput;
use setpoint_proto::setpoint::{
    ContainerInput, ContainerOutput, Exit, HalfClose, LogsPiece, LogsRequest, OpenContainer,
    Opened, PortForwardInput, PortForwardOutput, UsageRequest, UsageResponse,
};
use setpoint_tls::Credentials;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status, Streaming};

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// An agent on a loopback port. It stops when dropped.
pub struct Agent {
    pub address: SocketAddr,
    seen: Seen,
    _stop: DropGuard,
}

/// The calls that the agent received, and the number of those that are open.
#[derive(Clone)]
struct Seen {
    opened: Arc<Mutex<Vec<OpenContainer>>>,
    open: watch::Sender<usize>,
}

impl Agent {
    /// Starts the agent of the node `n`, which has these pages, too; over TLS if it has credentials.
    pub async fn start(credentials: Option<Credentials>, pages: Router) -> Self {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Seen {
            opened: Arc::default(),
            open: watch::Sender::new(0),
        };
        let service = NodeServer::new(seen.clone());
        let service = Router::new().route_service("/setpoint.v1.Node/{method}", service);
        let router = gateways_only::calls(service).merge(pages);
        let stop = CancellationToken::new();
        let limits = Limits::default();
        tokio::spawn(serve_with(
            credentials,
            listener,
            router,
            limits,
            stop.clone(),
        ));
        Self {
            address,
            seen,
            _stop: stop.drop_guard(),
        }
    }

    /// Returns what the containers were asked to open.
    pub fn opened(&self) -> Vec<OpenContainer> {
        self.seen.opened.lock().clone()
    }

    /// Waits until no call is open.
    pub async fn idle(&self) {
        let mut open = self.seen.open.subscribe();
        open.wait_for(|open| *open == 0).await.unwrap();
    }
}

/// Returns a node that declares this address of its agent.
pub fn node(name: &str, address: SocketAddr) -> Value {
    json!({
        "metadata": { "name": name },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": address.ip() }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": address.port() } },
        },
    })
}

/// Counts as an open call until it is dropped.
struct Open(watch::Sender<usize>);

impl Seen {
    fn open(&self) -> Open {
        self.open.send_modify(|open| *open += 1);
        Open(self.open.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

type Sender = mpsc::Sender<Result<ContainerOutput, Status>>;

async fn write(to: &Sender, output: Output) {
    let output = Some(output);
    let _ = to.send(Ok(ContainerOutput { output })).await;
}

async fn stdout(to: &Sender, text: String) {
    write(to, Output::Stdout(text.into())).await;
}

/// Runs a command. Returns its exit code.
async fn run(
    command: &[&str],
    mut input: Streaming<ContainerInput>,
    to: &Sender,
) -> Result<i32, Status> {
    match command {
        ["echo", words @ ..] => stdout(to, words.join(" ")).await,
        ["complain"] => write(to, Output::Stderr(Bytes::from_static(b"no"))).await,
        ["exit", code] => return Ok(code.parse().unwrap()),
        ["break"] => return Err(Status::unavailable("the node is gone")),
        ["flood"] => {
            let piece = Bytes::from(vec![b'x'; 32 << 10]);
            while !to.is_closed() {
                write(to, Output::Stdout(piece.clone())).await;
            }
        }
        _ => {
            while let Some(Ok(next)) = input.next().await {
                match next.input {
                    Some(Input::Stdin(data)) => write(to, Output::Stdout(data)).await,
                    Some(Input::StdinEnd(_)) => break,
                    Some(Input::TerminalSize(size)) => {
                        stdout(to, format!("{}x{}", size.width, size.height)).await;
                    }
                    _ => {}
                }
            }
            stdout(to, ".".into()).await;
        }
    }
    Ok(0)
}

impl Seen {
    async fn container(
        &self,
        mut input: Streaming<ContainerInput>,
        exits: bool,
    ) -> Result<Response<Responses<ContainerOutput>>, Status> {
        let Some(Input::Open(open)) = input.message().await?.and_then(|first| first.input) else {
            return Err(Status::invalid_argument("not opened"));
        };
        self.opened.lock().push(open.clone());
        if open.command == ["missing"] {
            return Err(Status::not_found("container not found (\"main\")"));
        }
        let counted = self.open();
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(async move {
            let _counted = counted;
            write(&sender, Output::Opened(Opened {})).await;
            let command: Vec<_> = open.command.iter().map(String::as_str).collect();
            let running = run(&command, input, &sender);
            let ended = tokio::select! {
                ended = running => ended,
                () = sender.closed() => return,
            };
            match ended {
                Ok(code) if exits => write(&sender, Output::Exit(Exit { code })).await,
                Ok(_) => {}
                Err(error) => {
                    let _ = sender.send(Err(error)).await;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(responses).boxed()))
    }
}

#[tonic::async_trait]
impl Node for Seen {
    type LogsStream = Responses<LogsPiece>;
    type ExecStream = Responses<ContainerOutput>;
    type AttachStream = Responses<ContainerOutput>;
    type PortForwardStream = Responses<PortForwardOutput>;

    async fn logs(&self, _: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        let pieces = ["one\n", "two\n"].map(|line| Ok(LogsPiece { data: line.into() }));
        Ok(Response::new(futures::stream::iter(pieces).boxed()))
    }

    async fn usage(&self, _: Request<UsageRequest>) -> Result<Response<UsageResponse>, Status> {
        Ok(Response::new(UsageResponse::default()))
    }

    async fn exec(
        &self,
        request: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        self.container(request.into_inner(), true).await
    }

    async fn attach(
        &self,
        request: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        self.container(request.into_inner(), false).await
    }

    /// Port 80 has a server of HTTP, port 7 returns what it gets, and nothing listens at others.
    async fn port_forward(
        &self,
        request: Request<Streaming<PortForwardInput>>,
    ) -> Result<Response<Self::PortForwardStream>, Status> {
        let mut input = request.into_inner();
        let first = input.message().await?.and_then(|first| first.input);
        let Some(PortInput::Open(open)) = first else {
            return Err(Status::invalid_argument("not opened"));
        };
        if ![7, 80].contains(&open.port) {
            return Err(Status::unavailable("connection refused"));
        }
        let counted = self.open();
        let (sender, responses) = mpsc::channel(1);
        tokio::spawn(async move {
            let _counted = counted;
            let send = async |output: PortOutput| {
                let output = Some(output);
                let _ = sender.send(Ok(PortForwardOutput { output })).await;
            };
            send(PortOutput::Opened(Opened {})).await;
            while let Some(Ok(next)) = input.next().await {
                match next.input {
                    Some(PortInput::Data(data)) if open.port == 7 => {
                        send(PortOutput::Data(data)).await;
                    }
                    Some(PortInput::Data(data)) => send(PortOutput::Data(answer(&data))).await,
                    Some(PortInput::End(_)) => {
                        send(PortOutput::End(HalfClose {})).await;
                        return;
                    }
                    _ => {}
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(responses).boxed()))
    }
}

/// Answers a request of HTTP with its own text. The path `/moved` redirects.
fn answer(request: &[u8]) -> Bytes {
    let text = String::from_utf8_lossy(request);
    let head = match text.starts_with("GET /moved ") {
        true => "HTTP/1.1 302 Found\r\nLocation: /there?a=b",
        false => "HTTP/1.1 200 OK\r\nX-Own: yes",
    };
    let length = text.len();
    format!(
        "{head}\r\nContent-Length: {length}\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\n{text}"
    )
    .into()
}
