//! Port forwarding by channels of a WebSocket: each port has one for data and one for errors, and one connection.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{FuturesUnordered, SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use setpoint_proto::{ApiError, Reason};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::CancellationToken;

use super::super::channels::{Codec, Received};
use super::super::upgrade::Connection;
use super::super::websocket::{Socket, close, socket};
use super::Forwarder;
use crate::agents::{Sink, Source};

/// The ports of one WebSocket; there are 256 channels.
const MOST_PORTS: usize = 64;
/// The messages for a port that wait.
const QUEUE: usize = 4;
/// The time in which a client has to close its end, after all was sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

const fn codec(is_base64: bool) -> Codec {
    Codec {
        is_base64,
        closes: false,
    }
}

/// The protocols, by the names of their subprotocols.
pub(super) const PROTOCOLS: [(&str, Codec); 3] = [
    ("v4.channel.k8s.io", codec(false)),
    ("v4.base64.channel.k8s.io", codec(true)),
    ("", codec(false)),
];

/// Returns the ports of a client, which must name some.
///
/// # Errors
/// `BadRequest`.
pub(super) fn checked(ports: Vec<u16>) -> Result<Vec<u16>, ApiError> {
    let message = match ports.len() {
        0 => "query parameter \"ports\" is required".to_owned(),
        1..=MOST_PORTS => return Ok(ports),
        _ => format!("at most {MOST_PORTS} ports may be specified"),
    };
    Err(ApiError::new(Reason::BadRequest, message))
}

/// Serves a client until all connections have ended, the client is gone, or the server stops.
pub(super) async fn serve(
    connection: Connection,
    codec: Codec,
    forwarder: Forwarder,
    ports: Vec<u16>,
    stop: &CancellationToken,
) {
    let (sink, stream) = socket(connection).await.split();
    let sink = Mutex::new(sink);
    let (mut inputs, forwarding) = (Vec::new(), FuturesUnordered::new());
    for (port, first) in ports.into_iter().zip((0..=u8::MAX).step_by(2)) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        inputs.push(sender);
        let ended = CancellationToken::new();
        let channel = |number| Channel {
            ended: ended.clone(),
            number,
            codec,
            sink: &sink,
        };
        let (data, errors) = (channel(first), channel(first.saturating_add(1)));
        forwarding.push(forward(&forwarder, port, receiver, data, errors));
    }
    let mut receiving = pin!(receive(stream, codec, inputs));
    let sending = async {
        forwarding.collect::<()>().await;
        let _ = close(&mut *sink.lock().await).await;
    };
    tokio::select! {
        () = &mut receiving => return,
        () = sending => {}
        () = stop.cancelled() => {}
    }
    let _ = timeout(CLOSE_TIMEOUT, receiving).await;
}

/// Passes on what the client sends, until it closes the WebSocket.
async fn receive(mut stream: SplitStream<Socket>, codec: Codec, inputs: Vec<mpsc::Sender<Bytes>>) {
    while let Some(Ok(message)) = stream.next().await {
        match codec.decode(message) {
            Received::Data(channel, data) if channel % 2 == 0 => {
                if let Some(input) = inputs.get(usize::from(channel / 2)) {
                    // A connection that has ended takes no more.
                    let _ = input.send(data).await;
                }
            }
            Received::End => return,
            _ => {}
        }
    }
}

/// Forwards the connection of a port. Both channels begin with the port.
async fn forward(
    forwarder: &Forwarder,
    port: u16,
    input: mpsc::Receiver<Bytes>,
    mut data: Channel<'_>,
    mut errors: Channel<'_>,
) {
    let number = Bytes::copy_from_slice(&port.to_le_bytes());
    for channel in [&mut data, &mut errors] {
        if channel.send(number.clone()).await.is_err() {
            return;
        }
    }
    let mut source = Input {
        data: input,
        ended: data.ended.clone(),
    };
    if let Err(error) = forwarder.forward(port, &mut source, &mut data).await {
        let _ = errors.send(error.into()).await;
    }
}

/// The bytes that the client sends, until it or the Pod ends the connection.
struct Input {
    data: mpsc::Receiver<Bytes>,
    ended: CancellationToken,
}

impl Source for Input {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let next = self.ended.run_until_cancelled(self.data.recv());
        Ok(next.await.flatten())
    }
}

/// A channel to the client.
struct Channel<'s> {
    ended: CancellationToken,
    number: u8,
    codec: Codec,
    sink: &'s Mutex<SplitSink<Socket, Message>>,
}

impl Sink for Channel<'_> {
    async fn send(&mut self, data: Bytes) -> Result<(), String> {
        let message = self.codec.encode(self.number, &data);
        let sent = self.sink.lock().await.send(message).await;
        sent.map_err(|error| error.to_string())
    }

    /// Ends both directions: the protocol cannot end one of a channel.
    async fn end(&mut self) {
        self.ended.cancel();
    }
}
