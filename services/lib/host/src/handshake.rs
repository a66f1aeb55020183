//! The beginning of a connection: TLS with the credentials of the process, or none.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use setpoint_tls::Credentials;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::connection_info::ConnectionInfo;
use crate::stall_timeout::{StallTimeout, count_cut};

/// The time for which a connection goes on whose client has a certificate that is no longer trusted, or is only now. It
/// gets no further requests; those under way are answered.
const DISTRUST_GRACE: Duration = Duration::from_secs(2);

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
    let mut stream = TlsAcceptor::from(credentials.server())
        .accept(stream)
        .await?;
    let chain = stream.get_ref().1.peer_certificates();
    let chain = chain.unwrap_or_default().to_vec();
    let info = ConnectionInfo::over_tls(local, credentials.identify(&chain));
    if !chain.is_empty() {
        let cut = cut(credentials.clone(), chain, info.clone());
        stream.get_mut().0.end_with(cut);
    }
    Ok((Either::Right(Box::new(stream)), info))
}

/// Waits until the connection of a client must end, because the CA of its certificate is no longer trusted, or its
/// certificate for another reason; or because its CA was not known before, as right after the start, and is now. The
/// client is verified again whenever the CAs change.
async fn cut(credentials: Credentials, chain: Vec<CertificateDer<'static>>, info: ConnectionInfo) {
    let changed = async {
        match info.identity() {
            Ok(_) => credentials.distrusted(chain).await,
            Err(refused) => {
                credentials.trusted(chain).await;
                refused
            }
        }
    };
    tokio::select! {
        reason = changed => info.distrust(reason),
        () = info.distrusted() => {}
    }
    sleep(DISTRUST_GRACE).await;
    count_cut("distrusted");
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
