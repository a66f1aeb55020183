//! A byte stream in the binary messages of a WebSocket.

use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::websocket::{Socket, close};

/// The bytes of each direction that wait.
const PIPE: usize = 64 << 10;
/// The largest message that is sent.
const CHUNK: usize = 32 << 10;
/// The time in which the other direction has to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns both ends of a pipe.
pub(super) fn pipe() -> (DuplexStream, DuplexStream) {
    duplex(PIPE)
}

/// Copies between a WebSocket and one end of a pipe, until either ends.
pub(super) async fn run(socket: Socket, pipe: DuplexStream) {
    let (mut sink, mut stream) = socket.split();
    let (mut reader, mut writer) = split(pipe);
    let receive = async {
        while let Some(Ok(message)) = stream.next().await {
            match message {
                // Without the other end of the pipe nobody takes it.
                Message::Binary(data) => match writer.write_all(&data).await {
                    Ok(()) => {}
                    Err(_) => break,
                },
                Message::Close(_) | Message::Text(_) => break,
                _ => {}
            }
        }
        let _ = writer.shutdown().await;
    };
    let send = async {
        let mut buffer = BytesMut::with_capacity(CHUNK);
        while let Ok(1..) = reader.read_buf(&mut buffer).await {
            let message = Message::Binary(buffer.split().freeze());
            if sink.send(message).await.is_err() {
                return;
            }
            buffer.reserve(CHUNK);
        }
        let _ = close(&mut sink).await;
    };
    let (mut receive, mut send) = (pin!(receive), pin!(send));
    let _ = tokio::select! {
        () = &mut receive => timeout(CLOSE_TIMEOUT, send).await,
        () = &mut send => timeout(CLOSE_TIMEOUT, receive).await,
    };
}
