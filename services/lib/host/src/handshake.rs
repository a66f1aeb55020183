//! The beginning of a connection: TLS with the credentials of the process, or none.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use setpoint_tls::Credentials;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connection_info::ConnectionInfo;
use crate::stall_timeout::StallTimeout;

/// The answer to a request without TLS, as of Go's servers.
const HTTP_REQUEST: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// The length of a request that is read before it is answered so.
const REQUEST_BYTES: usize = 4 << 10;

/// A connection of a client, with TLS or without.
pub(crate) enum ServerStream {
    Plain(StallTimeout),
    Tls(Box<TlsStream<StallTimeout>>),
}

impl ServerStream {
    /// Makes the handshake of TLS on a connection to `local`, if there are credentials. Returns who the client is.
    ///
    /// # Errors
    /// If the handshake fails.
    pub async fn accept(
        stream: StallTimeout,
        credentials: Option<&Credentials>,
        local: SocketAddr,
    ) -> io::Result<(Self, ConnectionInfo)> {
        let Some(credentials) = credentials else {
            return Ok((Self::Plain(stream), ConnectionInfo::new(local)));
        };
        let stream = refuse_http(stream).await?;
        let stream = TlsAcceptor::from(credentials.server())
            .accept(stream)
            .await?;
        let chain = stream.get_ref().1.peer_certificates();
        let client = credentials.identify(chain.unwrap_or_default());
        let info = ConnectionInfo::over_tls(local, client);
        Ok((Self::Tls(Box::new(stream)), info))
    }
}

/// Answers a client that begins with a request instead of a handshake.
async fn refuse_http(mut stream: StallTimeout) -> io::Result<StallTimeout> {
    let mut first = [0];
    // No record of TLS begins with a letter; a method does.
    if stream.peek(&mut first).await? > 0 && first[0].is_ascii_uppercase() {
        // Bytes that are not read reset the connection, which may overtake the answer.
        let _ = stream.read(&mut [0; REQUEST_BYTES]).await?;
        stream.write_all(HTTP_REQUEST).await?;
        stream.shutdown().await?;
        return Err(io::Error::other(
            "the client sent an HTTP request to an HTTPS server",
        ));
    }
    Ok(stream)
}

impl AsyncRead for ServerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
