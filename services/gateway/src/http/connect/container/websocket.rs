//! The streams of a container as channels of a WebSocket.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::super::channels::{Codec, Received};
use super::super::outcome::ErrorForm;
use super::super::upgrade::Connection;
use super::super::websocket::{self, Socket, socket};
use super::Wanted;
use super::relay::{self, Client, Gone, Relay, Stdin, Written};
use crate::agents::ContainerCall;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// The time in which a client has to close its end, after all was sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A protocol of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    codec: Codec,
    errors: ErrorForm,
}

const fn protocol(is_base64: bool, closes: bool, errors: ErrorForm) -> Protocol {
    Protocol {
        codec: Codec { is_base64, closes },
        errors,
    }
}

/// The protocols, by the names of their subprotocols.
pub(super) const PROTOCOLS: [(&str, Protocol); 6] = [
    (
        "v5.channel.k8s.io",
        protocol(false, true, ErrorForm::Status),
    ),
    (
        "v4.channel.k8s.io",
        protocol(false, false, ErrorForm::Status),
    ),
    (
        "v4.base64.channel.k8s.io",
        protocol(true, false, ErrorForm::Status),
    ),
    ("channel.k8s.io", protocol(false, false, ErrorForm::Text)),
    (
        "base64.channel.k8s.io",
        protocol(true, false, ErrorForm::Text),
    ),
    ("", protocol(false, false, ErrorForm::Text)),
];

/// Serves a client until the container ends, or the client is gone: the call ends then.
pub(super) async fn serve(
    connection: Connection,
    protocol: Protocol,
    wanted: Wanted,
    relay: Relay,
) {
    let (sink, stream) = socket(connection).await.split();
    let Relay { verb, call, stop } = relay;
    let ContainerCall { input, output } = call;
    let mut receiving = pin!(receive(stream, protocol.codec, wanted, Stdin(input)));
    let mut client = Channels {
        sink,
        codec: protocol.codec,
    };
    let sending = async {
        client.open(wanted).await?;
        let outcome = relay::output(verb, output, &stop, &mut client).await?;
        let error = outcome.encode(protocol.errors);
        if !error.is_empty() {
            client.write(ERROR, &error).await?;
        }
        client.close().await
    };
    tokio::select! {
        () = &mut receiving => return,
        sent = sending => if sent.is_err() { return },
    }
    // Closing the connection before the client has read everything could lose the end.
    let _ = timeout(CLOSE_TIMEOUT, receiving).await;
}

/// Passes on what the client sends, until it closes the WebSocket.
async fn receive(mut stream: SplitStream<Socket>, codec: Codec, wanted: Wanted, stdin: Stdin) {
    while let Some(Ok(message)) = stream.next().await {
        match codec.decode(message) {
            Received::Data(STDIN, data) if wanted.stdin => stdin.write(data).await,
            Received::Closed(STDIN) if wanted.stdin => stdin.end().await,
            Received::Data(RESIZE, data) if wanted.tty => stdin.resize(&data).await,
            Received::End => return,
            _ => {}
        }
    }
}

/// The client's end.
struct Channels {
    sink: SplitSink<Socket, Message>,
    codec: Codec,
}

impl Channels {
    /// Tells the client that the streams are open, by an empty message in the first one that it reads.
    async fn open(&mut self, wanted: Wanted) -> Result<(), Gone> {
        let first = match (wanted.stdout, wanted.stderr) {
            (true, _) => STDOUT,
            (false, true) => STDERR,
            _ => ERROR,
        };
        self.write(first, b"").await
    }

    async fn write(&mut self, channel: u8, data: &[u8]) -> Result<(), Gone> {
        let message = self.codec.encode(channel, data);
        self.sink.send(message).await.map_err(|_| Gone)
    }

    async fn close(&mut self) -> Result<(), Gone> {
        websocket::close(&mut self.sink).await.map_err(|_| Gone)
    }
}

impl Client for Channels {
    async fn send(&mut self, stream: Written, data: Bytes) -> Result<(), Gone> {
        let channel = match stream {
            Written::Stdout => STDOUT,
            Written::Stderr => STDERR,
        };
        self.write(channel, &data).await
    }
}
