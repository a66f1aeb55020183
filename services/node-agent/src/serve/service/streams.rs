//! The calls Exec and Attach: converts between their messages and the runtime's streams.

use std::future::ready;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use setpoint_proto::setpoint::container_input::Input as Request;
use setpoint_proto::setpoint::container_output::Output as Response;
use setpoint_proto::setpoint::{
    ContainerInput, ContainerOutput, Exit, OpenContainer, Opened, TerminalSize,
};
use setpoint_proto::{ApiError, Reason};
use setpoint_runtime::{Input, Inputs, Output, Outputs, Streams};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::to_api_error;

/// Timeout of the first request of a call.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The responses of a call.
pub(super) type Responses = BoxStream<'static, Result<ContainerOutput, Status>>;

/// Returns the first request of a call, and the input that follows it.
///
/// # Errors
/// If the first request is another, or does not come in time.
pub(super) async fn open(
    mut requests: Streaming<ContainerInput>,
) -> Result<(OpenContainer, Inputs), Status> {
    let first = timeout(OPEN_TIMEOUT, requests.message()).await;
    let first =
        first.map_err(|_| Status::deadline_exceeded("the first request did not come in time"))?;
    match first?.and_then(|request| request.input) {
        Some(Request::Open(open)) => {
            check(&open)?;
            Ok((open, inputs(requests)))
        }
        _ => Err(bad_request("the first request must be `open`").into()),
    }
}

fn check(open: &OpenContainer) -> Result<(), ApiError> {
    if open.tty && open.stderr {
        return Err(bad_request("tty and stderr cannot both be true"));
    }
    match open.stdin || open.stdout || open.stderr {
        true => Ok(()),
        false => Err(bad_request(
            "you must specify at least one of stdin, stdout, stderr",
        )),
    }
}

pub(super) fn bad_request(message: &str) -> ApiError {
    ApiError::new(Reason::BadRequest, message)
}

/// Returns the streams that a client asks for.
pub(super) fn streams(open: &OpenContainer) -> Streams {
    Streams {
        stdin: open.stdin,
        stdout: open.stdout,
        stderr: open.stderr,
        tty: open.tty,
    }
}

/// Returns the input in requests, until they end or break.
fn inputs(requests: Streaming<ContainerInput>) -> Inputs {
    let until_broken = requests.take_while(|request| ready(request.is_ok()));
    let inputs = until_broken
        .filter_map(|request| ready(request.ok().and_then(|request| input(request.input?))));
    inputs.boxed()
}

fn input(request: Request) -> Option<Input> {
    match request {
        Request::Open(_) => None,
        Request::Stdin(bytes) => Some(Input::Stdin(bytes)),
        Request::StdinEnd(_) => Some(Input::StdinEnd),
        Request::TerminalSize(TerminalSize { width, height }) => {
            let short = |size| u16::try_from(size).unwrap_or(u16::MAX);
            Some(Input::Resize(short(width), short(height)))
        }
    }
}

/// Returns the responses for the output of a process. They end with an error if the agent shuts down first.
pub(super) fn responses(output: Outputs, shutdown: &CancellationToken) -> Responses {
    let opened = response(Response::Opened(Opened {}));
    let rest = output.map(|item| match item {
        Ok(Output::Stdout(bytes)) => Ok(response(Response::Stdout(bytes))),
        Ok(Output::Stderr(bytes)) => Ok(response(Response::Stderr(bytes))),
        Ok(Output::Exit(code)) => Ok(response(Response::Exit(Exit { code }))),
        Err(error) => Err(to_api_error(error).into()),
    });
    let all = futures::stream::iter([Ok(opened)]).chain(rest);
    until_shutdown(all, shutdown).boxed()
}

fn response(output: Response) -> ContainerOutput {
    let output = Some(output);
    ContainerOutput { output }
}

/// Ends a stream with an error when the agent shuts down.
pub(super) fn until_shutdown<T: Send + 'static>(
    stream: impl Stream<Item = Result<T, Status>> + Send + 'static,
    shutdown: &CancellationToken,
) -> impl Stream<Item = Result<T, Status>> + Send + 'static {
    let (ended, shutdown) = (shutdown.clone().cancelled_owned(), shutdown.clone());
    let reason = async move { shutdown.is_cancelled() };
    let reason = futures::stream::once(reason).filter_map(|is_shutdown| async move {
        is_shutdown.then(|| Err(Status::unavailable("the node agent is shutting down")))
    });
    stream.take_until(ended).chain(reason)
}
