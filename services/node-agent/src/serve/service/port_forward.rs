//! The call PortForward: one TCP connection between a client and a port of a Pod.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use setpoint_proto::setpoint::port_forward_input::Input as Request;
use setpoint_proto::setpoint::port_forward_output::Output as Response;
use setpoint_proto::setpoint::{HalfClose, OpenPort, Opened, PortForwardInput, PortForwardOutput};
use setpoint_runtime::Connection;
use setpoint_runtime::streams::{BUFFERED_CHUNKS, CHUNK};
use setpoint_task::catch_panic;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf, split};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use super::idle::Idle;
use super::streams::{OPEN_TIMEOUT, bad_request};

/// The responses of a call.
pub(super) type Responses = BoxStream<'static, Result<PortForwardOutput, Status>>;

/// Returns the first request of a call and its port.
///
/// # Errors
/// If the first request is another, or does not come in time.
pub(super) async fn open(
    requests: &mut Streaming<PortForwardInput>,
) -> Result<(OpenPort, u16), Status> {
    let first = timeout(OPEN_TIMEOUT, requests.message()).await;
    let first =
        first.map_err(|_| Status::deadline_exceeded("the first request did not come in time"))?;
    let Some(Request::Open(open)) = first?.and_then(|request| request.input) else {
        return Err(bad_request("the first request must be `open`").into());
    };
    match u16::try_from(open.port) {
        Ok(port) if port > 0 => Ok((open, port)),
        _ => Err(bad_request("port must be between 1 and 65535").into()),
    }
}

/// Forwards what both ends send until both have ended, one breaks, or the responses are dropped.
pub(super) fn forward(
    connection: Connection,
    requests: Streaming<PortForwardInput>,
    idle: Idle,
) -> Responses {
    let (sender, receiver) = mpsc::channel(BUFFERED_CHUNKS);
    tokio::spawn(catch_panic("port-forward", async move {
        let (from_pod, to_pod) = split(connection);
        let both =
            async { tokio::try_join!(download(from_pod, &sender), upload(to_pod, requests, idle)) };
        let broken = tokio::select! {
            () = sender.closed() => None,
            ended = both => ended.err(),
        };
        if let Some(status) = broken {
            // The client may have left.
            let _ = sender.send(Err(status)).await;
        }
    }));
    let next = |mut receiver: mpsc::Receiver<_>| async move {
        let item = receiver.recv().await?;
        Some((item, receiver))
    };
    futures::stream::unfold(receiver, next).boxed()
}

type Sender = mpsc::Sender<Result<PortForwardOutput, Status>>;

async fn download(mut from_pod: ReadHalf<Connection>, sender: &Sender) -> Result<(), Status> {
    let mut next = Response::Opened(Opened {});
    loop {
        let ended = matches!(next, Response::End(_));
        let output = Some(next);
        if sender.send(Ok(PortForwardOutput { output })).await.is_err() || ended {
            return Ok(());
        }
        let mut chunk = BytesMut::with_capacity(CHUNK);
        next = match from_pod.read_buf(&mut chunk).await.map_err(broken)? {
            0 => Response::End(HalfClose {}),
            _ => Response::Data(chunk.freeze()),
        };
    }
}

async fn upload(
    mut to_pod: WriteHalf<Connection>,
    mut requests: Streaming<PortForwardInput>,
    idle: Idle,
) -> Result<(), Status> {
    while let Some(data) = next_data(&mut requests).await? {
        idle.touch();
        to_pod.write_all(&data).await.map_err(broken)?;
    }
    // A Pod that has closed the connection takes no half-close.
    let _ = to_pod.shutdown().await;
    Ok(())
}

/// Returns the next bytes for the Pod; `None` at the end.
async fn next_data(requests: &mut Streaming<PortForwardInput>) -> Result<Option<Bytes>, Status> {
    loop {
        match requests.message().await?.map(|request| request.input) {
            Some(Some(Request::Data(data))) => return Ok(Some(data)),
            None | Some(Some(Request::End(_))) => return Ok(None),
            Some(None | Some(Request::Open(_))) => {}
        }
    }
}

fn broken(error: std::io::Error) -> Status {
    Status::unavailable(format!("the connection to the pod is broken: {error}"))
}
