//! Port forwarding by SPDY: each connection has a stream of data and one of errors.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use setpoint_spdy::{Incoming, Stream, Writer, accept};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Forwarder;
use crate::agents::{Sink, Source};

/// The connections whose second stream is still missing.
const MOST_HALVES: usize = 64;
/// The time in which the last frames have to be written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a client until it ends the connection, or the server stops.
pub(super) async fn serve<Io>(connection: Io, forwarder: Forwarder, stop: &CancellationToken)
where
    Io: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut incoming, driver) = accept(connection);
    let mut driver = pin!(driver);
    tokio::select! {
        () = &mut driver => return,
        () = session(&mut incoming, &forwarder) => {}
        () = stop.cancelled() => {}
    }
    let closing = async { tokio::join!(incoming.close(), driver) };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

/// Accepts streams, and forwards each pair of them.
async fn session(incoming: &mut Incoming, forwarder: &Forwarder) {
    let mut halves: HashMap<String, Stream> = HashMap::new();
    let mut forwarding = JoinSet::new();
    loop {
        let stream = tokio::select! {
            stream = incoming.next() => stream,
            Some(_) = forwarding.join_next() => continue,
        };
        let Some(stream) = stream else { return };
        let Some((port, is_error)) = described(&stream) else {
            stream.writer.reset().await;
            continue;
        };
        let id = request_id(&stream, is_error);
        let other = halves.remove(&id);
        let other = other.filter(|other| is_of_errors(other) != is_error);
        let pair = match (other, is_error) {
            (Some(data), true) => (data, stream),
            (Some(error), false) => (stream, error),
            (None, _) => {
                if halves.len() >= MOST_HALVES {
                    stream.writer.reset().await;
                } else {
                    halves.insert(id, stream);
                }
                continue;
            }
        };
        let forwarder = forwarder.clone();
        forwarding.spawn(async move { forward(&forwarder, port, pair).await });
    }
}

/// Returns the port of a stream, and whether it is for errors; `None` if the client did not say so.
fn described(stream: &Stream) -> Option<(u16, bool)> {
    let port = stream.header("port").parse().ok();
    let port = port.filter(|port| *port > 0)?;
    match stream.header("streamtype") {
        "error" => Some((port, true)),
        "data" => Some((port, false)),
        _ => None,
    }
}

fn is_of_errors(stream: &Stream) -> bool {
    stream.header("streamtype") == "error"
}

/// Returns what both streams of a connection have in common. Without it, the stream of errors is opened first, and that
/// of data next.
fn request_id(stream: &Stream, is_error: bool) -> String {
    match stream.header("requestid") {
        "" if is_error => stream.id.to_string(),
        "" => stream.id.saturating_sub(2).to_string(),
        id => id.to_owned(),
    }
}

/// Forwards a connection. An error is written to its stream, and breaks the other.
async fn forward(forwarder: &Forwarder, port: u16, (data, error): (Stream, Stream)) {
    let mut source = Received(data.data);
    let mut sink = data.writer;
    match forwarder.forward(port, &mut source, &mut sink).await {
        Ok(()) => error.writer.end().await,
        Err(text) => {
            let _ = error.writer.write(Bytes::from(text)).await;
            error.writer.end().await;
            sink.reset().await;
        }
    }
}

/// The data of a stream.
struct Received(mpsc::Receiver<Bytes>);

impl Source for Received {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        Ok(self.0.recv().await)
    }
}

impl Sink for Writer {
    async fn send(&mut self, data: Bytes) -> Result<(), String> {
        let written = self.write(data).await;
        written.map_err(|_| "the client is gone".to_owned())
    }

    async fn end(&mut self) {
        Writer::end(self).await;
    }
}
