//! The beginning of a connection: TLS with the credentials of the process, or none.

use std::io;
use std::net::SocketAddr;

use setpoint_tls::Credentials;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::connection_info::ConnectionInfo;
use crate::stall_timeout::StallTimeout;

/// The answer to a request without TLS, as of Go's servers.
const HTTP_REQUEST: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/// The length of a request that is read before it is answered so.
const REQUEST_BYTES: usize = 4 << 10;

/// A connection of a client: without TLS, or with it.
pub(crate) type ServerStream = Either<StallTimeout, Box<TlsStream<StallTimeout>>>;

/// Makes the handshake of TLS on a connection to `local`, if there are credentials. Returns the connection and the
/// identity of the client.
///
/// # Errors
/// If the handshake fails.
pub(crate) async fn accept(
    stream: StallTimeout,
    credentials: Option<&Credentials>,
    local: SocketAddr,
) -> io::Result<(ServerStream, ConnectionInfo)> {
    let Some(credentials) = credentials else {
        return Ok((Either::Left(stream), ConnectionInfo::new(local)));
    };
    let stream = refuse_http(stream).await?;
    let stream = TlsAcceptor::from(credentials.server())
        .accept(stream)
        .await?;
    let chain = stream.get_ref().1.peer_certificates();
    let client = credentials.identify(chain.unwrap_or_default());
    let info = ConnectionInfo::over_tls(local, client);
    Ok((Either::Right(Box::new(stream)), info))
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
