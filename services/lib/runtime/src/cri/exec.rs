//! Runs commands in containers, and connects to the streams of containers' own processes.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use k8s_cri::v1::{AttachRequest, ExecRequest};
use serde::Deserialize;
use setpoint_spdy::{Stream, Writer, connect};
use setpoint_task::catch_panic;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

use super::client::{call, failed};
use super::streaming::{self, COMMANDS};
use super::{Shared, exec_process};
use crate::streams::{OutputSender, output_channel};
use crate::{ContainerId, Error, Input, Inputs, Output, Outputs, Streams};

/// Exit code of a command that could not be started, as that of an engine.
const NOT_STARTED: i32 = 126;
/// Maximum size of the status of a command.
const MAX_STATUS: usize = 64 << 10;

impl Shared {
    /// Runs a command in a running container.
    pub(super) async fn exec(
        this: &Arc<Self>,
        id: &ContainerId,
        command: &[String],
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        let runtime_id = this.table.lock().running(id)?.runtime_id.clone();
        let what = format!("run a command in container {}", id.name);
        let request = ExecRequest {
            container_id: runtime_id.clone(),
            cmd: command.to_vec(),
            tty: streams.tty,
            stdin: streams.stdin,
            // The runtime needs one of them.
            stdout: true,
            stderr: !streams.tty,
        };
        let mut tracker = this.tracker(&runtime_id, command).await;
        let answer = call(this.service.runtime().exec(request)).await;
        let url = answer.map_err(failed(&what))?.url;
        let session = Session::open(&url, streams).await;
        let session = session.map_err(|error| unreached(&what, error))?;
        let (output, outputs) = output_channel();
        tokio::spawn(catch_panic("exec", async move {
            let mut process = None;
            let ended = tokio::select! {
                () = output.closed() => None,
                ended = session.relay(streams, input, &output) => Some(ended),
                () = exec_process::track(&mut tracker, &mut process) => None,
            };
            match ended {
                Some(status) => finish(status, what, &output).await,
                None => exec_process::kill(tracker, process).await,
            }
        }));
        Ok(outputs)
    }

    /// Connects to the streams of a container's own process.
    pub(super) async fn attach(
        &self,
        id: &ContainerId,
        streams: Streams,
        input: Inputs,
    ) -> Result<Outputs, Error> {
        let runtime_id = self.table.lock().running(id)?.runtime_id.clone();
        let what = format!("attach to container {}", id.name);
        let request = AttachRequest {
            container_id: runtime_id,
            stdin: streams.stdin,
            tty: streams.tty,
            stdout: true,
            stderr: !streams.tty,
        };
        let answer = call(self.service.runtime().attach(request)).await;
        let url = answer.map_err(failed(&what))?.url;
        let session = Session::open(&url, streams).await;
        let session = session.map_err(|error| unreached(&what, error))?;
        let (output, outputs) = output_channel();
        tokio::spawn(catch_panic("attach", async move {
            tokio::select! {
                () = output.closed() => {}
                // Its end is that of the container, whatever the status.
                status = session.relay(streams, input, &output) => {
                    debug!(?status, "the streams of a container have ended");
                }
            }
        }));
        Ok(outputs)
    }
}

/// Sends the end of a command.
async fn finish(status: Option<Status>, what: String, output: &OutputSender) {
    let end = match status.map(Status::code) {
        Some(Ok(code)) => Ok(Output::Exit(code)),
        Some(Err(why)) if is_not_started(&why) => {
            let _ = output
                .send(Ok(Output::Stderr(format!("{why}\n").into())))
                .await;
            Ok(Output::Exit(NOT_STARTED))
        }
        Some(Err(why)) => Err(Error::Refused { what, why }),
        None => Err(Error::Engine {
            what,
            source: "the connection to the container runtime broke".into(),
        }),
    };
    // The client may have left.
    let _ = output.send(end).await;
}

fn unreached(what: &str, error: streaming::Error) -> Error {
    Error::Engine {
        what: what.to_owned(),
        source: Box::new(error),
    }
}

/// Returns whether a message is that of an OCI runtime about a program that it cannot start.
fn is_not_started(message: &str) -> bool {
    [
        "executable file",
        "unable to start container process",
        "exec failed",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// The streams of a process.
struct Session {
    error: mpsc::Receiver<Bytes>,
    stdin: Option<Writer>,
    stdout: mpsc::Receiver<Bytes>,
    stderr: Option<mpsc::Receiver<Bytes>>,
    resize: Option<Writer>,
    _connection: AbortOnDropHandle<()>,
}

impl Session {
    /// Connects to a process. Streams that the client does not read are read all the same, so that the end is noticed.
    async fn open(url: &str, streams: Streams) -> Result<Self, streaming::Error> {
        let connection = streaming::connect(url, COMMANDS).await?;
        let all = [
            ("error", true),
            ("stdin", streams.stdin),
            ("stdout", true),
            ("stderr", !streams.tty),
            ("resize", streams.tty),
        ];
        let names = all.iter().filter(|(_, wanted)| *wanted);
        let headers = names.clone().map(|(name, _)| [("streamtype", *name)]);
        let opened = connect(connection, headers.collect());
        let (opened, running) =
            opened.map_err(|error| streaming::Error::Connection(Box::new(error)))?;
        let mut opened: Vec<_> = names.map(|(name, _)| *name).zip(opened).collect();
        let mut take = |name: &str| -> Option<Stream> {
            let place = opened.iter().position(|(known, _)| *known == name)?;
            Some(opened.swap_remove(place).1)
        };
        let none = || mpsc::channel(1).1;
        Ok(Self {
            error: take("error").map_or_else(none, |stream| stream.data),
            stdin: take("stdin").map(|stream| stream.writer),
            stdout: take("stdout").map_or_else(none, |stream| stream.data),
            stderr: take("stderr").map(|stream| stream.data),
            resize: take("resize").map(|stream| stream.writer),
            _connection: AbortOnDropHandle::new(tokio::spawn(running)),
        })
    }

    /// Relays the streams until the process has ended; returns its status, or `None` if the connection broke.
    async fn relay(self, streams: Streams, input: Inputs, output: &OutputSender) -> Option<Status> {
        let Self {
            mut error,
            stdin,
            stdout,
            stderr,
            resize,
            _connection,
        } = self;
        let outputs = async {
            let stdout = copy(stdout, streams.stdout, Output::Stdout, output);
            let stderr = async {
                if let Some(stderr) = stderr {
                    copy(stderr, streams.stderr, Output::Stderr, output).await;
                }
            };
            let status = async {
                let mut text = Vec::new();
                while let Some(piece) = error.recv().await {
                    if text.len() < MAX_STATUS {
                        text.extend_from_slice(&piece);
                    }
                }
                serde_json::from_slice(&text).ok()
            };
            tokio::join!(stdout, stderr, status).2
        };
        let fed = async {
            feed(stdin.as_ref(), resize.as_ref(), input).await;
            // The end of the input is not that of the client.
            std::future::pending().await
        };
        tokio::select! {
            status = outputs => status,
            never = fed => never,
        }
    }
}

async fn copy(
    mut from: mpsc::Receiver<Bytes>,
    is_wanted: bool,
    of: fn(Bytes) -> Output,
    output: &OutputSender,
) {
    while let Some(piece) = from.recv().await {
        if is_wanted && output.send(Ok(of(piece))).await.is_err() {
            return;
        }
    }
}

async fn feed(stdin: Option<&Writer>, resize: Option<&Writer>, mut input: Inputs) {
    while let Some(item) = input.next().await {
        let sent = match (item, stdin, resize) {
            (Input::Stdin(bytes), Some(stdin), _) => stdin.write(bytes).await,
            (Input::Resize(columns, rows), _, Some(resize)) => {
                let size = format!("{{\"Width\":{columns},\"Height\":{rows}}}\n");
                resize.write(size.into()).await
            }
            (Input::StdinEnd, Some(stdin), _) => {
                stdin.end().await;
                Ok(())
            }
            _ => Ok(()),
        };
        if sent.is_err() {
            return;
        }
    }
    if let Some(stdin) = stdin {
        stdin.end().await;
    }
}

/// The status of a command, a `metav1.Status`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    status: String,
    message: String,
    details: Details,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

impl Status {
    /// Returns the exit code, or the message about a command that has none.
    fn code(self) -> Result<i32, String> {
        let mut causes = self.details.causes.iter();
        let code = causes.find(|cause| cause.reason == "ExitCode");
        match (self.status.as_str(), code.map(|code| code.message.parse())) {
            ("Success", _) => Ok(0),
            (_, Some(Ok(code))) => Ok(code),
            _ => Err(self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_the_exit_code_or_the_reason_why_there_is_none() {
        let code = |text: &str| serde_json::from_str::<Status>(text).unwrap().code();
        assert_eq!(code(r#"{"metadata":{},"status":"Success"}"#), Ok(0));
        let failed = r#"{"status":"Failure","message":"command terminated with non-zero exit code",
            "reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;
        assert_eq!(code(failed), Ok(3));
        let broken = r#"{"status":"Failure","message":"error executing command","code":500}"#;
        assert_eq!(code(broken), Err("error executing command".to_owned()));
    }
}
