//! Relays what a container writes to a client, until it ends.

use bytes::Bytes;
use serde::Deserialize;
use setpoint_proto::setpoint::container_input::Input;
use setpoint_proto::setpoint::container_output::Output;
use setpoint_proto::setpoint::{ContainerInput, ContainerOutput, StdinEnd, TerminalSize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::super::outcome::Outcome;
use crate::agents::{ContainerCall, Verb};

/// An open call, and the signal to end it.
pub(super) struct Relay {
    pub verb: Verb,
    pub call: ContainerCall,
    pub stop: CancellationToken,
}

/// A stream that a container writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Stdout,
    Stderr,
}

/// The client is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gone;

/// A client that reads the streams of a container.
pub(super) trait Client {
    /// Sends what was written.
    fn send(
        &mut self,
        stream: Written,
        data: Bytes,
    ) -> impl Future<Output = Result<(), Gone>> + Send;
}

/// Relays the output of a container, until it ends or the server stops. Returns how it ended.
///
/// # Errors
/// If the client is gone.
pub(super) async fn output(
    verb: Verb,
    mut output: Streaming<ContainerOutput>,
    stop: &CancellationToken,
    client: &mut impl Client,
) -> Result<Outcome, Gone> {
    loop {
        let next = tokio::select! {
            next = output.message() => next,
            () = stop.cancelled() => return Ok(Outcome::Failed("the server is shutting down".into())),
        };
        let next = match next {
            Ok(Some(next)) => next.output,
            Ok(None) => return Ok(ended(verb)),
            Err(status) => return Ok(failed(verb, status.message())),
        };
        match next {
            Some(Output::Stdout(data)) => client.send(Written::Stdout, data).await?,
            Some(Output::Stderr(data)) => client.send(Written::Stderr, data).await?,
            Some(Output::Exit(exit)) if exit.code == 0 => return Ok(Outcome::Success),
            Some(Output::Exit(exit)) => return Ok(Outcome::Exited(exit.code)),
            _ => {}
        }
    }
}

fn ended(verb: Verb) -> Outcome {
    match verb {
        Verb::Attach => Outcome::Success,
        Verb::Exec => failed(
            verb,
            "the node's agent has ended the call without an exit code",
        ),
    }
}

fn failed(verb: Verb, error: &str) -> Outcome {
    Outcome::Failed(match verb {
        Verb::Exec => format!("error executing command in container: {error}"),
        Verb::Attach => format!("error attaching to container: {error}"),
    })
}

/// The container's side of the client's streams.
#[derive(Clone)]
pub(super) struct Stdin(pub mpsc::Sender<ContainerInput>);

impl Stdin {
    /// Sends data. If the container takes none any more, it is dropped: its output says why.
    pub(super) async fn write(&self, data: Bytes) {
        self.send(Input::Stdin(data)).await;
    }

    pub(super) async fn end(&self) {
        self.send(Input::StdinEnd(StdinEnd {})).await;
    }

    /// Sends the sizes of the terminal that a message has. What is no size is skipped.
    pub(super) async fn resize(&self, message: &[u8]) {
        for size in sizes(message) {
            self.send(Input::TerminalSize(size)).await;
        }
    }

    async fn send(&self, input: Input) {
        let input = Some(input);
        let _ = self.0.send(ContainerInput { input }).await;
    }
}

/// A size as clients write it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

/// Reads sizes, one after the other.
fn sizes(message: &[u8]) -> Vec<TerminalSize> {
    let sizes = serde_json::Deserializer::from_slice(message).into_iter::<Size>();
    let sizes = sizes.map_while(Result::ok).map(|size| TerminalSize {
        width: size.width.into(),
        height: size.height.into(),
    });
    sizes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_each_other() {
        let found = sizes(b"{\"Width\":80,\"Height\":24}\n{\"Width\":100,\"Height\":40}\n{\"Wid");
        let found: Vec<_> = found.iter().map(|size| (size.width, size.height)).collect();
        assert_eq!(found, [(80, 24), (100, 40)]);
        assert!(sizes(b"no size").is_empty());
        assert!(sizes(b"{\"Width\":-1,\"Height\":70000}").is_empty());
    }

    #[test]
    fn only_an_attachment_may_end_without_an_exit_code() {
        assert_eq!(ended(Verb::Attach), Outcome::Success);
        assert!(matches!(ended(Verb::Exec), Outcome::Failed(_)));
    }
}
