//! The streams of a container as streams of SPDY.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::future::join;
use setpoint_spdy::{Incoming, Stream, Writer, accept};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::outcome::ErrorForm;
use super::super::upgrade::Connection;
use super::Wanted;
use super::relay::{self, Client, Gone, Relay, Stdin, Written};
use crate::agents::ContainerCall;

/// The time in which a client has to open its streams, as upstream's.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// The time in which the last frames have to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest size of a terminal, in bytes of JSON.
const LARGEST_SIZE: usize = 1 << 10;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    errors: ErrorForm,
    /// Whether a terminal has a stream for its sizes.
    resizes: bool,
}

const fn protocol(errors: ErrorForm, resizes: bool) -> Protocol {
    Protocol { errors, resizes }
}

/// The versions, by their names.
pub(super) const PROTOCOLS: [(&str, Protocol); 4] = [
    ("v4.channel.k8s.io", protocol(ErrorForm::Status, true)),
    ("v3.channel.k8s.io", protocol(ErrorForm::Text, true)),
    ("v2.channel.k8s.io", protocol(ErrorForm::Text, false)),
    ("channel.k8s.io", protocol(ErrorForm::Text, false)),
];

/// Returns the first version of the client that is known.
pub(super) fn negotiate(offered: &[&str]) -> Option<(&'static str, Protocol)> {
    let known = |name: &&str| PROTOCOLS.into_iter().find(|(known, _)| known == name);
    offered.iter().find_map(known)
}

/// Serves a client until the container ends, or the client is gone: the call ends then.
pub(super) async fn serve(
    connection: Connection,
    protocol: Protocol,
    wanted: Wanted,
    relay: Relay,
) {
    let (incoming, driver) = accept(connection);
    let mut driver = pin!(driver);
    tokio::select! {
        () = &mut driver => return,
        () = session(incoming, protocol, wanted, relay) => {}
    }
    let _ = timeout(CLOSE_TIMEOUT, driver).await;
}

async fn session(mut incoming: Incoming, protocol: Protocol, wanted: Wanted, relay: Relay) {
    let opening = timeout(OPEN_TIMEOUT, Opened::of(&mut incoming, protocol, wanted));
    if let Ok(Some(opened)) = opening.await {
        opened.serve(protocol, relay).await;
    }
    incoming.close().await;
}

/// The streams that a client has opened.
#[derive(Default)]
struct Opened {
    error: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

impl Opened {
    /// Waits for all streams. `None` if the client is gone.
    async fn of(incoming: &mut Incoming, protocol: Protocol, wanted: Wanted) -> Option<Self> {
        let mut opened = Self::default();
        while !opened.is_complete(protocol, wanted) {
            let stream = incoming.next().await?;
            match stream.header("streamtype") {
                "error" => opened.error = Some(stream),
                "stdin" => opened.stdin = Some(stream),
                "stdout" => opened.stdout = Some(stream),
                "stderr" => opened.stderr = Some(stream),
                "resize" => opened.resize = Some(stream),
                _ => stream.writer.reset().await,
            }
        }
        Some(opened)
    }

    fn is_complete(&self, protocol: Protocol, wanted: Wanted) -> bool {
        let resizes = wanted.tty && protocol.resizes;
        self.error.is_some()
            && (!wanted.stdin || self.stdin.is_some())
            && (!wanted.stdout || self.stdout.is_some())
            && (!wanted.stderr || self.stderr.is_some())
            && (!resizes || self.resize.is_some())
    }

    /// Relays until the container ends.
    async fn serve(self, protocol: Protocol, relay: Relay) {
        let Relay { verb, call, stop } = relay;
        let ContainerCall { input, output } = call;
        let stdin = Stdin(input);
        let mut client = Streams {
            stdout: self.stdout.as_ref().map(|stream| stream.writer.clone()),
            stderr: self.stderr.as_ref().map(|stream| stream.writer.clone()),
        };
        let error = self.error.map(|stream| stream.writer);
        let sending = async {
            let Ok(outcome) = relay::output(verb, output, &stop, &mut client).await else {
                return;
            };
            for writer in [&client.stdout, &client.stderr].into_iter().flatten() {
                writer.end().await;
            }
            if let Some(error) = error {
                let message = outcome.encode(protocol.errors);
                if !message.is_empty() {
                    let _ = error.write(message).await;
                }
                error.end().await;
            }
        };
        let input = self.stdin.map(|stream| stream.data);
        let sizes = self.resize.map(|stream| stream.data);
        let receiving = join(write_stdin(input, &stdin), write_sizes(sizes, &stdin));
        // The end of the input is not that of the output.
        tokio::select! {
            () = sending => {}
            never = async { receiving.await; pending::<Infallible>().await } => match never {},
        }
    }
}

async fn write_stdin(data: Option<mpsc::Receiver<Bytes>>, stdin: &Stdin) {
    let Some(mut data) = data else { return };
    while let Some(data) = data.recv().await {
        stdin.write(data).await;
    }
    stdin.end().await;
}

/// Sizes end with a line.
async fn write_sizes(data: Option<mpsc::Receiver<Bytes>>, stdin: &Stdin) {
    let Some(mut data) = data else { return };
    let mut line = BytesMut::new();
    while let Some(data) = data.recv().await {
        line.extend_from_slice(&data);
        if line.ends_with(b"\n") || line.ends_with(b"}") {
            stdin.resize(&line).await;
            line.clear();
        }
        if line.len() > LARGEST_SIZE {
            return;
        }
    }
}

/// The client's streams of output.
struct Streams {
    stdout: Option<Writer>,
    stderr: Option<Writer>,
}

impl Client for Streams {
    async fn send(&mut self, stream: Written, data: Bytes) -> Result<(), Gone> {
        let writer = match stream {
            Written::Stdout => &self.stdout,
            Written::Stderr => &self.stderr,
        };
        match writer {
            Some(writer) => writer.write(data).await.map_err(|_| Gone),
            None => Ok(()),
        }
    }
}
