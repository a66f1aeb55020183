//! Watches in a WebSocket: each event is a message, a text for JSON and bytes for protobuf, as upstream. What a client
//! sends is ignored; when it closes the WebSocket, the watch ends.

use axum::response::Response;
use bytes::Bytes;
use futures::stream::SplitSink;
use futures::{SinkExt as _, Stream, StreamExt as _};
use http::HeaderMap;
use setpoint_proto::ApiError;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::connect::upgrade::{Upgrade, switch};
use super::connect::websocket::{Socket, close, handshake, socket_of_events, subprotocols};
use super::encoder::LENGTH_PREFIX;
use super::handler::ObjectRequest;

/// The response to the handshake of a client.
pub(super) struct Handshake(HeaderMap);

impl Handshake {
    /// Returns the response; `None` if the request asks for no WebSocket. The subprotocol is the first that the client
    /// names, whatever it is: `Accept` decides on the encoding of events.
    ///
    /// # Errors
    /// `BadRequest` for a version of WebSocket other than 13.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        if Upgrade::of(headers) != Ok(Upgrade::WebSocket) {
            return Ok(None);
        }
        let offered = subprotocols(headers);
        let first = offered.first().copied().unwrap_or_default();
        let (response, ()) = handshake(headers, &[(first, ())])?;
        Ok(Some(Self(response)))
    }
}

/// Upgrades the connection, and sends chunks of encoded events until one end closes the WebSocket.
///
/// # Errors
/// `BadRequest` if the connection cannot be upgraded.
pub(super) fn serve(
    request: &mut ObjectRequest,
    Handshake(headers): Handshake,
    chunks: impl Stream<Item = Vec<Bytes>> + Send + 'static,
    is_text: bool,
) -> Result<Response, ApiError> {
    let chunks = chunks.take_until(request.streams.stop.clone().cancelled_owned());
    let upgrade = request.upgrade.take();
    switch(
        upgrade,
        &request.streams,
        Upgrade::WebSocket,
        headers,
        async move |connection| {
            let socket = socket_of_events(connection).await;
            send(chunks.boxed(), socket, is_text).await;
        },
    )
}

/// Sends events until there are no more, or the client leaves. The connection fails if the client reads nothing for too
/// long.
async fn send(mut chunks: impl Stream<Item = Vec<Bytes>> + Unpin, socket: Socket, is_text: bool) {
    let (mut sink, mut stream) = socket.split();
    let sending = async {
        while let Some(events) = chunks.next().await {
            if write(&mut sink, events, is_text).await.is_err() {
                return;
            }
        }
        let _ = close(&mut sink).await;
    };
    let leaving = async { while let Some(Ok(_)) = stream.next().await {} };
    tokio::select! {
        () = sending => {}
        () = leaving => {}
    }
}

async fn write(
    sink: &mut SplitSink<Socket, Message>,
    events: Vec<Bytes>,
    is_text: bool,
) -> Result<(), Error> {
    for event in events {
        let message = match is_text {
            true => Message::Text(Utf8Bytes::try_from(event)?),
            false => Message::Binary(event.slice(LENGTH_PREFIX.min(event.len())..)),
        };
        sink.feed(message).await?;
    }
    sink.flush().await
}
