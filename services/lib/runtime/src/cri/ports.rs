//! Forwards connections to the loopback of a Pod, by the streaming server of the runtime.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use k8s_cri::v1::PortForwardRequest;
use setpoint_spdy::{Stream, connect};
use setpoint_task::catch_panic;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf, ReadHalf,
    WriteHalf, duplex, split,
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::Shared;
use super::client::{call, failed};
use super::streaming::{self, PORT_FORWARD};
use crate::streams::CHUNK;
use crate::{Connection, Error};

/// Maximum size of the message about a connection that has failed.
const MAX_MESSAGE: usize = 4096;

impl Shared {
    /// Opens a connection to a port of the loopback of a Pod. Whether something listens there is known only when it is
    /// read.
    pub(super) async fn forward_port(&self, uid: &str, port: u16) -> Result<Connection, Error> {
        let sandbox = self.sandboxes.lock().get(uid).cloned();
        let sandbox = sandbox.ok_or_else(|| Error::Unknown(uid.to_owned()))?;
        let what = format!("forward port {port}");
        let request = PortForwardRequest {
            pod_sandbox_id: sandbox.runtime_id,
            port: vec![port.into()],
        };
        let answer = call(self.service.runtime().port_forward(request)).await;
        let url = answer.map_err(failed(&what))?.url;
        let forwarded = Forwarded::open(&url, port).await;
        let forwarded = forwarded.map_err(|error| Error::Engine {
            what,
            source: Box::new(error),
        })?;
        Ok(Box::pin(forwarded))
    }
}

/// A connection through the runtime.
struct Forwarded {
    local: DuplexStream,
    /// The runtime's message about its failure.
    failure: Arc<OnceLock<String>>,
}

impl Forwarded {
    async fn open(url: &str, port: u16) -> Result<Self, streaming::Error> {
        let connection = streaming::connect(url, PORT_FORWARD).await?;
        let number = port.to_string();
        let headers = |kind| {
            [
                ("streamtype", kind),
                ("port", number.as_str()),
                ("requestid", "0"),
            ]
        };
        // The runtime waits for the stream of errors first.
        let opened = connect(connection, vec![headers("error"), headers("data")]);
        let broken = |error| streaming::Error::Connection(Box::new(error));
        let (mut streams, running) = opened.map_err(broken)?;
        let missing = || broken(io::Error::other("a stream is missing"));
        let data = streams.pop().ok_or_else(missing)?;
        let errors = streams.pop().ok_or_else(missing)?;
        let (local, remote) = duplex(CHUNK);
        let failure = Arc::default();
        let told = Arc::clone(&failure);
        tokio::spawn(catch_panic("port-forward", async move {
            let _running = AbortOnDropHandle::new(tokio::spawn(running));
            relay(remote, data, errors, &told).await;
        }));
        Ok(Self { local, failure })
    }
}

/// Relays both directions until the runtime has ended the connection.
async fn relay(remote: DuplexStream, data: Stream, errors: Stream, failure: &OnceLock<String>) {
    // Nothing is sent on it.
    errors.writer.end().await;
    let (mut reader, mut writer) = split(remote);
    let Stream {
        data: from_pod,
        writer: to_pod,
        ..
    } = data;
    let up = async {
        send(&mut reader, &to_pod).await;
        to_pod.end().await;
        // The Pod may still send.
        std::future::pending().await
    };
    let down = async {
        let ((), message) = tokio::join!(receive(from_pod, &mut writer), read_all(errors.data));
        if !message.is_empty() {
            let _ = failure.set(message);
        }
        // After the message, which the reader finds at the end. It may have left.
        let _ = writer.shutdown().await;
    };
    tokio::select! {
        () = down => {}
        never = up => never,
    }
}

async fn send(reader: &mut ReadHalf<DuplexStream>, to: &setpoint_spdy::Writer) {
    loop {
        let mut piece = BytesMut::with_capacity(CHUNK);
        match reader.read_buf(&mut piece).await {
            Ok(1..) if to.write(piece.freeze()).await.is_ok() => {}
            _ => return,
        }
    }
}

/// Passes data on until it ends, or the reader leaves.
async fn receive(mut from: mpsc::Receiver<Bytes>, writer: &mut WriteHalf<DuplexStream>) {
    while let Some(piece) = from.recv().await {
        if writer.write_all(&piece).await.is_err() {
            return;
        }
    }
}

async fn read_all(mut from: mpsc::Receiver<Bytes>) -> String {
    let mut text = Vec::new();
    while let Some(piece) = from.recv().await {
        if text.len() < MAX_MESSAGE {
            text.extend_from_slice(&piece);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

impl AsyncRead for Forwarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.local).poll_read(context, buffer);
        match (&read, self.failure.get()) {
            (Poll::Ready(Ok(())), Some(message)) if buffer.filled().len() == before => {
                Poll::Ready(Err(io::Error::other(message.clone())))
            }
            _ => read,
        }
    }
}

impl AsyncWrite for Forwarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.local).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.local).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.local).poll_shutdown(context)
    }
}
