//! The handshake of WebSocket.

use futures::SinkExt as _;
use futures::stream::SplitSink;
use http::header::{
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
};
use http::{HeaderMap, HeaderValue};
use setpoint_proto::{ApiError, Reason};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use super::upgrade::Connection;

/// The largest message of a client in bytes. It waits in memory until the Pod takes it.
const MESSAGE: usize = 1 << 20;
/// The bytes that are written at once.
const WRITE_BUFFER: usize = 32 << 10;

/// A WebSocket of a client.
pub(in crate::http) type Socket = WebSocketStream<Connection>;

/// Returns the headers of the response, and the first subprotocol of the client that the server accepts. A client that
/// names none has the empty one.
///
/// # Errors
/// `BadRequest` for another version, `Forbidden` if no subprotocol is accepted.
pub(in crate::http) fn handshake<P: Copy>(
    headers: &HeaderMap,
    accepted: &[(&str, P)],
) -> Result<(HeaderMap, P), ApiError> {
    let bad = |message: &str| ApiError::new(Reason::BadRequest, message);
    if headers
        .get(SEC_WEBSOCKET_VERSION)
        .map(HeaderValue::as_bytes)
        != Some(b"13")
    {
        return Err(bad("unable to upgrade: missing or bad WebSocket Version"));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| bad("unable to upgrade: missing Sec-WebSocket-Key"))?;
    let (name, protocol) = negotiate(headers, accepted)?;
    let mut response = HeaderMap::new();
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes()));
    let accept = accept.map_err(|error| bad(&error.to_string()))?;
    response.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if !name.is_empty() {
        let name = HeaderValue::try_from(name).map_err(|error| bad(&error.to_string()))?;
        response.insert(SEC_WEBSOCKET_PROTOCOL, name);
    }
    Ok((response, protocol))
}

/// Returns the subprotocols of a client, in its order.
pub(in crate::http) fn subprotocols(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).into_iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    names
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

fn negotiate<'n, P: Copy>(
    headers: &HeaderMap,
    accepted: &[(&'n str, P)],
) -> Result<(&'n str, P), ApiError> {
    let offered = subprotocols(headers);
    let found = |name: &str| accepted.iter().find(|(known, _)| *known == name).copied();
    let chosen = match offered.as_slice() {
        [] => found(""),
        names => names.iter().find_map(|name| found(name)),
    };
    chosen.ok_or_else(|| {
        let known: Vec<_> = accepted.iter().map(|(name, _)| *name).collect();
        let (offered, known) = (offered.join(" "), known.join(" "));
        let message = format!(
            "unable to upgrade: requested protocol(s) are not supported: [{offered}]; supports [{known}]"
        );
        ApiError::new(Reason::Forbidden, message)
    })
}

/// Returns the WebSocket of an upgraded connection.
pub(in crate::http) async fn socket(connection: Connection) -> Socket {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE))
        .write_buffer_size(0)
        .max_write_buffer_size(MESSAGE + WRITE_BUFFER);
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// Returns the WebSocket of an upgraded connection for events, each as large as its object. One of them at most waits
/// to be written.
pub(in crate::http) async fn socket_of_events(connection: Connection) -> Socket {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE))
        .write_buffer_size(WRITE_BUFFER);
    WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await
}

/// Tells the client that the WebSocket ends as it should. Without a code, client-go takes the end for an error.
///
/// # Errors
/// If the client is gone.
pub(in crate::http) async fn close(sink: &mut SplitSink<Socket, Message>) -> Result<(), Error> {
    let frame = CloseFrame {
        code: CloseCode::Normal,
        reason: Utf8Bytes::default(),
    };
    sink.send(Message::Close(Some(frame))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: [(&str, u8); 3] = [("v5.x", 5), ("v4.x", 4), ("", 1)];

    fn shaken(offered: Option<&'static str>) -> Result<(String, u8), ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        headers.insert(SEC_WEBSOCKET_KEY, key);
        if let Some(offered) = offered {
            let offered = HeaderValue::from_static(offered);
            headers.insert(SEC_WEBSOCKET_PROTOCOL, offered);
        }
        let (response, protocol) = handshake(&headers, &ACCEPTED)?;
        // The example of RFC 6455.
        assert_eq!(
            response[SEC_WEBSOCKET_ACCEPT],
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        );
        let name = response.get(SEC_WEBSOCKET_PROTOCOL);
        let name = name.map_or("", |name| name.to_str().unwrap());
        Ok((name.to_owned(), protocol))
    }

    #[test]
    fn the_first_known_subprotocol_of_the_client_is_chosen() {
        assert_eq!(shaken(Some("x, v4.x, v5.x")), Ok(("v4.x".into(), 4)));
        assert_eq!(shaken(None), Ok((String::new(), 1)));
        let error = shaken(Some("v6.x")).unwrap_err();
        assert_eq!(error.reason, Reason::Forbidden);
        assert!(error.message.ends_with("[v6.x]; supports [v5.x v4.x ]"));
    }

    #[test]
    fn other_versions_are_refused() {
        let error = handshake(&HeaderMap::new(), &ACCEPTED).unwrap_err();
        assert_eq!(error.reason, Reason::BadRequest);
    }
}
